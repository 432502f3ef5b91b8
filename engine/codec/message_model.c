/*
 * message_model.c: what of a message only a model writes: its thinking, its calls, its
 * refusal, in the forms of the providers.
 *
 * Owns the two lists of names. A call of `tool_calls`, or of a block tool_use, is a link
 * as well (message.c); those of other forms are only here.
 */
#include "codec/message.h"

static const char *const members[] = {
    "reasoning_content", "reasoning", "reasoning_details", "thinking",
    "function_call",     "refusal",   "tool_calls",        NULL};

static const char *const blocks[] = {"thinking",
                                     "redacted_thinking",
                                     "reasoning",
                                     "refusal",
                                     "tool_use",
                                     "server_tool_use",
                                     "mcp_tool_use",
                                     "toolCall",
                                     "tool_call",
                                     "function_call",
                                     "custom_tool_call",
                                     "local_shell_call",
                                     "web_search_call",
                                     "file_search_call",
                                     "code_interpreter_call",
                                     "image_generation_call",
                                     "computer_call",
                                     "mcp_call",
                                     NULL};

/* The name in a list that a value is; NULL: none. */
static const char *one_of(const char *const *list, json value)
{
    while (*list && !json_is(value, *list))
        list++;
    return *list;
}

/* Whether a value says nothing: null, false, "", [] or {}. */
static int is_empty(json value)
{
    return value.type == JSON_NULL || value.type == JSON_FALSE || value.size <= 2;
}

/* The first block of a content that only a model writes. */
static const char *block_of_model(json content)
{
    const char *found = NULL;
    json_iter it, inner;

    if (content.type != JSON_ARRAY)
        return NULL;
    for (it = json_begin(content); !found && json_next(&it);)
        if (it.value.type == JSON_OBJECT)
            for (inner = json_begin(it.value); !found && json_next(&inner);)
                if (json_is(inner.key, "type"))
                    found = one_of(blocks, inner.value);
    return found;
}

const char *message_of_model(const char *text, size_t size)
{
    const char *found = NULL, *name;
    json_iter it = json_begin(json_of(text, size));

    while (!found && json_next(&it)) {
        name = one_of(members, it.key);
        if (name && !is_empty(it.value))
            found = name;
        else if (json_is(it.key, "content"))
            found = block_of_model(it.value);
    }
    return found;
}
