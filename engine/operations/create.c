/*
 * create.c: sessions that are made new: what a header says was screened first.
 *
 * A header is written alone, so the labels of what is flagged follow it in a commit of
 * their own.
 */
#include "operations/create.h"

#include "base/names.h"
#include "operations/append.h"

void given_texts_deinit(given_texts *t)
{
    write_labels_deinit(&t->labels, t->title.alloc);
    buf_deinit(&t->title);
    buf_deinit(&t->metadata);
}

sessile_status given_texts_screen(given_texts *t, store_core *st,
                                  sessile_session_options *options, sessile_error *err)
{
    sessile_status status;

    *t = (given_texts){.labels = {NULL, 0, 0}};
    buf_init(&t->title, &st->alloc);
    buf_init(&t->metadata, &st->alloc);
    status = session_screen_title(st, &options->title, &t->title, &t->labels, 0, err);
    if (!status)
        status = session_check_metadata(&t->metadata, st, options->metadata, err);
    if (!status)
        status = write_screen_json(st, SESSILE_SCREEN_METADATA, &t->metadata, 0,
                                   &t->labels, 0, err);
    if (!status && t->metadata.size)
        options->metadata = (sessile_slice){t->metadata.data, t->metadata.size};
    return status;
}

static sessile_status build_labels(void *arg, session_core *s, batch *b,
                                   sessile_error *err)
{
    (void)s;
    (void)err;
    write_labels_put(arg, b, 0, 0);
    return SESSILE_OK;
}

static sessile_status label_header(store_core *st, const sessile_session_options *named,
                                   const session_place *at, write_labels *labels,
                                   sessile_error *err)
{
    session_core *made;
    sessile_status status = session_open_at(&made, st, named, at, err), closed;

    if (status)
        return status;
    status = session_write(made, build_labels, labels, NULL, err);
    closed = session_close(made, status ? NULL : err);
    return status ? status : closed;
}

sessile_status session_make(store_core *st, const sessile_session_options *options,
                            const sessile_link *parent, const session_place *at,
                            sessile_error *err, char *new_id)
{
    sessile_session_options own = *options;
    given_texts texts;
    sessile_status status = given_texts_screen(&texts, st, &own, err);

    if (!status)
        status = session_create_at(st, &own, parent, at, err, new_id);
    if (!status && texts.labels.count) {
        if (!own.id.size && new_id)
            own.id = slice_of(new_id);
        status = label_header(st, &own, at, &texts.labels, err);
        if (status)
            fail_prefix(err, "the session was made, and is not labelled");
    }
    given_texts_deinit(&texts);
    return status;
}

sessile_status session_open_or_make(session_core **out, store_core *st,
                                    const sessile_session_options *options,
                                    sessile_error *err)
{
    enum { TRIES = 4 };

    for (int i = 0;; i++) {
        sessile_status status = session_open(out, st, options, err);
        if (status != SESSILE_NOTFOUND || i == TRIES)
            return status;
        error_clear(err);
        status = session_make(st, options, NULL, NULL, err, NULL);
        /* Somebody made it in between: then it is there to be opened; or removed it. */
        if (status && status != SESSILE_EXISTS && status != SESSILE_NOTFOUND)
            return status;
        error_clear(err);
    }
}
