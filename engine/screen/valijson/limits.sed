# Changes two headers of valijson, validator.hpp and validation_visitor.hpp, into the copies
# that schema.cpp includes:
#   - std::regex recurses for each character and overflows the stack of a long text, so
#     expressions go to guards.hpp;
#   - a schema that refers to itself, and arrays of which each pair of items is compared, are
#     counted and end with an exception.
s/#include <regex>/#include "guards.hpp"/
s/std::regex_search/schema_guards::search/g
s/std::regex_match/schema_guards::match/g
s/std::regex/schema_guards::regex/g
s/std::smatch/schema_guards::matches/g
/bool validateSchema(const Subschema &subschema)/,/{/ s/{/{ schema_guards::level level_;/
s/for (++innerItr; innerItr != end; ++innerItr) {/& schema_guards::tick();/
# Formats are of strings; valijson also judges other values by them.
s/^ *const std::string s = m_target.asString();/        if (!m_target.isString())\n            return true;\n&/
