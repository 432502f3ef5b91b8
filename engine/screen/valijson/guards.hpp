/*
 * guards.hpp: what keeps valijson within limits.
 *
 * One check of a text is one `guard` on the stack of its thread. It has the expressions of
 * the schema and counts the work.
 */
#ifndef SCHEMA_GUARDS_HPP
#define SCHEMA_GUARDS_HPP

#include <cstdint>
#include <mutex>
#include <regex>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "screen/schema_library.h"

namespace schema_guards {

constexpr int DEPTH_MAX = 400;          // schemas inside of schemas, with references
constexpr uint64_t TICKS_MAX = 2000000; // schemas applied, and pairs of items compared
constexpr size_t FORMAT_MAX = 64;       // bytes of a date or a time

// The compiled expressions of one schema, which all of its checks share.
class expressions {
public:
    explicit expressions(const schema_expressions &calls) : calls_(calls) {}
    expressions(const expressions &) = delete;
    expressions &operator=(const expressions &) = delete;
    ~expressions()
    {
        for (auto &one : compiled_)
            calls_.free_(one.second);
    }

    const void *find(const std::string &text)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        auto at = compiled_.find(text);
        if (at != compiled_.end())
            return at->second;
        void *made = calls_.new_(text.data(), text.size());
        if (!made)
            throw std::runtime_error("one of its patterns cannot be compiled");
        try {
            compiled_.emplace(text, made);
        } catch (...) {
            calls_.free_(made);
            throw;
        }
        return made;
    }

    bool search(const void *expression, const std::string &text) const
    {
        int found = calls_.search(expression, text.data(), text.size());
        if (found < 0)
            throw std::runtime_error("one of its patterns tries too many ways, or the text is "
                                     "longer than 64 KiB");
        return found != 0;
    }

private:
    schema_expressions calls_;
    std::mutex mutex_;
    std::unordered_map<std::string, void *> compiled_;
};

struct guard {
    explicit guard(expressions &of) : patterns(of), outer(current)
    {
        current = this;
    }
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;
    ~guard()
    {
        current = outer;
    }

    expressions &patterns;
    int depth = 0;
    uint64_t ticks = 0;
    guard *outer;
    static thread_local guard *current;
};

inline void tick()
{
    if (++guard::current->ticks > TICKS_MAX)
        throw std::runtime_error("it needs too many steps");
}

// One schema that is being applied.
struct level {
    level()
    {
        tick();
        if (++guard::current->depth > DEPTH_MAX) {
            --guard::current->depth;
            throw std::runtime_error("it refers to itself without end");
        }
    }
    ~level()
    {
        --guard::current->depth;
    }
};

// Stands for std::regex. Searches go to the engine's expressions.
class regex {
public:
    explicit regex(const std::string &text) : text_(text) {}
    const std::string &text() const
    {
        return text_;
    }

private:
    std::string text_;
};

using matches = std::smatch;

inline bool search(const std::string &text, const regex &expression)
{
    expressions &all = guard::current->patterns;
    tick();
    return all.search(all.find(expression.text()), text);
}

// Of dates and times, which are short.
inline bool match(const std::string &text, const regex &expression)
{
    return text.size() <= FORMAT_MAX &&
           std::regex_match(text, std::regex(expression.text()));
}

inline bool match(const std::string &text, matches &found, const regex &expression)
{
    return text.size() <= FORMAT_MAX &&
           std::regex_match(text, found, std::regex(expression.text()));
}

} // namespace schema_guards

#endif
