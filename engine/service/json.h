/*
 * json.h: messages of protobuf as JSON, and back.
 *
 * The service speaks JSON with the same methods and the same messages as gRPC. This
 * translation walks the descriptors that protoc-c compiles in, so that a field is
 * declared once, in the .proto file. It is the proto3 JSON mapping:
 *
 *   message        object; lowerCamelCase names out, those and the original names in
 *   int32, uint32  number out; a number, or a string with one, in. 1.0 and 1e2 are whole
 *   int64, uint64  string out; in as above, without a double in between
 *   float, double  number with the digits it takes to read back equal; "NaN", "Infinity"
 *   bytes          base64 out; standard and url-safe, padded or not, in
 *   enum           name out (a number that has no name: the number); either in
 *   repeated       array
 *   null           absent, as if the field were not there
 *
 * Fields with their default value are left out, but for messages and members of a oneof.
 * Refused are: unknown names, a field given twice, two members of a oneof, null in an
 * array, text that is not UTF-8, half of a surrogate pair, and NUL in a string, which the
 * messages of protobuf-c cannot hold. Not supported: maps, the types of google.protobuf,
 * json_name, proto2.
 *
 * One exception: a field of the type sessile.v1.Json { string text = 1; } is the JSON
 * value itself. In, text is the value's source, byte for byte; out, text is inserted as
 * it is but for white space around it, after it was checked to be one JSON value. null is
 * such a value, too.
 */
#ifndef SERVICE_JSON_H
#define SERVICE_JSON_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/error.h"

/* Objects and arrays inside one another, without what is in a Json. */
#define JSON_MESSAGE_DEPTH 64
/* The same of the whole text: a Json can have the greatest limits.depth, and what an
 * entry has around it. */
#define JSON_TEXT_DEPTH (JSON_MESSAGE_DEPTH + 1008)
/* Values in one request, as each "{}," in an array becomes a struct. */
#define JSON_VALUES_MOST 100000

/*
 * Reads size bytes of JSON, at most limit, as a message of this type. *out is freed with
 * message_free(), and is NULL on failure. a must stay until then.
 *
 * INVALID: not JSON (with the byte), no object, or a field that cannot be taken; the
 * message begins with the field's path, as "turn.messages[3].content", and never has more
 * of the text than the name of a field. LIMIT [size], [depth] or [values]; NOMEM.
 */
sessile_status json_to_message(const ProtobufCMessageDescriptor *type, const char *text,
                               size_t size, size_t limit, const allocator *a,
                               ProtobufCMessage **out, sessile_error *err);

/*
 * Appends a message as JSON, at most limit bytes, without white space but for what a Json
 * has inside. On failure the size of out does not change.
 *
 * INVALID: a string that is not UTF-8, or a Json that is none, named by its path; LIMIT
 * [size] or [depth]; NOMEM.
 */
sessile_status message_to_json(const ProtobufCMessage *message, size_t limit, buf *out,
                               sessile_error *err);

/* The allocator for protobuf_c_message_unpack(), over a, which must outlive the messages.
 */
ProtobufCAllocator message_allocator(const allocator *a);
/* Frees a message from json_to_message(), or from protobuf_c_message_unpack() with
 * message_allocator(). NULL is ignored. */
void message_free(ProtobufCMessage *message);

#endif
