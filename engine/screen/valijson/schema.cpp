/*
 * schema.cpp: schema.so: JSON Schema by valijson, over rapidjson, behind four functions in C.
 *
 * Owns the translation of exceptions and of reasons. Must never let an exception out, nor
 * a word of the text into a message.
 */
#ifndef VALIJSON_USE_EXCEPTIONS
#error "without VALIJSON_USE_EXCEPTIONS valijson ends the process"
#endif

#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include <valijson/adapters/rapidjson_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "screen/schema_library.h"
#include "guards.hpp"

thread_local schema_guards::guard *schema_guards::guard::current = nullptr;

namespace {

using adapter = valijson::adapters::RapidJsonAdapter;

struct handle {
    explicit handle(const schema_expressions &calls) : patterns(calls) {}
    schema_guards::expressions patterns;
    valijson::Schema schema;
};

void put(char *out, size_t size, const std::string &text)
{
    if (size == 0)
        return;
    size_t n = text.size() < size - 1 ? text.size() : size - 1;
    while (n > 0 && n < text.size() && (static_cast<unsigned char>(text[n]) & 0xc0) == 0x80)
        n--;
    std::memcpy(out, text.data(), n);
    out[n] = 0;
}

void parse(rapidjson::Document &document, const char *text, size_t size)
{
    document.Parse<rapidjson::kParseFullPrecisionFlag>(text, size);
    if (document.HasParseError())
        throw std::runtime_error("it has a number that is too large");
}

// Compiles every pattern, so that a wrong one is known before there is a text.
void compile_patterns(const rapidjson::Value &value, schema_guards::expressions &all)
{
    if (value.IsArray()) {
        for (const auto &item : value.GetArray())
            compile_patterns(item, all);
    } else if (value.IsObject()) {
        for (const auto &member : value.GetObject()) {
            const std::string name(member.name.GetString(), member.name.GetStringLength());
            if (name == "pattern" && member.value.IsString())
                all.find(std::string(member.value.GetString(),
                                     member.value.GetStringLength()));
            if (name == "patternProperties" && member.value.IsObject())
                for (const auto &one : member.value.GetObject())
                    all.find(std::string(one.name.GetString(), one.name.GetStringLength()));
            compile_patterns(member.value, all);
        }
    }
}

// Draft 4 is told from 7 by $schema, or by a boolean exclusiveMaximum or -Minimum.
bool is_draft4(const rapidjson::Value &value)
{
    if (value.IsArray()) {
        for (const auto &item : value.GetArray())
            if (is_draft4(item))
                return true;
    } else if (value.IsObject()) {
        for (const auto &member : value.GetObject()) {
            const std::string name(member.name.GetString(), member.name.GetStringLength());
            if (name == "$schema" && member.value.IsString())
                return std::strstr(member.value.GetString(), "draft-04") != nullptr;
            if ((name == "exclusiveMaximum" || name == "exclusiveMinimum") &&
                member.value.IsBool())
                return true;
        }
        for (const auto &member : value.GetObject())
            if (is_draft4(member.value))
                return true;
    }
    return false;
}

// "<root>", ["a/b"], [3] as the JSON Pointer /a~1b/3.
std::string pointer_of(const std::vector<std::string> &context)
{
    std::string out;
    for (size_t i = 1; i < context.size(); i++) {
        std::string part = context[i];
        if (part.size() >= 2 && part.front() == '[')
            part = part.substr(1, part.size() - 2);
        if (part.size() >= 2 && part.front() == '"')
            part = part.substr(1, part.size() - 2);
        out += '/';
        for (char c : part)
            out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    }
    return out;
}

// Two messages quote a name of the text: what stands behind it is cut.
std::string without_names(const std::string &text)
{
    size_t at = text.find(": '");
    if (at == std::string::npos)
        at = text.find(" associated with property name '");
    return at == std::string::npos ? text : text.substr(0, at);
}

// Runs f and turns what it throws into a code and a reason.
template <typename F> int caught(char *why, size_t size, F f) noexcept
{
    try {
        try {
            return f();
        } catch (const std::bad_alloc &) {
            return SCHEMA_NOMEM;
        } catch (const std::exception &e) {
            put(why, size, without_names(e.what()));
            return SCHEMA_FAILED;
        }
    } catch (...) {
        put(why, size, std::string());
        return SCHEMA_FAILED;
    }
}

} // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT int sessile_schema_version(void)
{
    return SCHEMA_LIBRARY_VERSION;
}

EXPORT void sessile_schema_close(void *schema)
{
    delete static_cast<handle *>(schema);
}

EXPORT int sessile_schema_open(void **out, const char *text, size_t size,
                               const schema_expressions *expressions, char *why,
                               size_t why_size)
{
    *out = nullptr;
    return caught(why, why_size, [&]() {
        rapidjson::Document document;
        parse(document, text, size);
        if (!document.IsObject() && !document.IsBool())
            throw std::runtime_error("it is no object");
        std::unique_ptr<handle> made(new handle(*expressions));
        compile_patterns(document, made->patterns);
        valijson::SchemaParser parser(is_draft4(document) ? valijson::SchemaParser::kDraft4
                                                          : valijson::SchemaParser::kDraft7);
        parser.populateSchema(adapter(document), made->schema);
        *out = made.release();
        return SCHEMA_OK;
    });
}

EXPORT int sessile_schema_check(const void *schema, const char *text, size_t size,
                                const schema_report *report)
{
    // The schema itself is not changed: its expressions are added under a lock.
    handle *h = static_cast<handle *>(const_cast<void *>(schema));
    return caught(report->message, report->message_size, [&]() {
        rapidjson::Document document;
        parse(document, text, size);
        {
            schema_guards::guard guard(h->patterns);
            valijson::Validator validator;
            if (validator.validate(h->schema, adapter(document), nullptr))
                return SCHEMA_OK;
        }
        schema_guards::guard guard(h->patterns); // once more, for the reason
        valijson::Validator validator;
        valijson::ValidationResults results;
        valijson::ValidationResults::Error error;
        validator.validate(h->schema, adapter(document), &results);
        if (results.popError(error)) {
            put(report->pointer, report->pointer_size, pointer_of(error.context));
            put(report->message, report->message_size, without_names(error.description));
        }
        return SCHEMA_BROKEN;
    });
}
