/* nodes.c: lists the servers that share a store, and counts its standbys. */
#include "admin/nodes.h"

#include "store/nodes.h"

#include <string.h>

sessile_status nodes_list(store_core *st, sessile_store_node **out, size_t *count,
                          sessile_error *err)
{
    store_node *rows;
    size_t n;
    *out = NULL;
    *count = 0;
    sessile_status status = store_nodes_list(&st->backend, &rows, &n, &st->alloc, err);
    if (status || n == 0) {
        host_free(rows);
        return status;
    }
    /* one block: the rows, and behind them the texts that they point to */
    *out = host_alloc(&st->alloc, n * (sizeof **out + sizeof *rows));
    if (!*out) {
        host_free(rows);
        return fail_nomem(err);
    }
    store_node *texts = (store_node *)(void *)(*out + n);
    memcpy(texts, rows, n * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        (*out)[i] = (sessile_store_node){
            texts[i].name,    texts[i].address,  texts[i].version, texts[i].started_ms,
            texts[i].left_ms, texts[i].sessions, texts[i].calls};
    *count = n;
    host_free(rows);
    return SESSILE_OK;
}

sessile_status nodes_standbys(store_core *st, int *standbys, sessile_error *err)
{
    return store_nodes_standbys(&st->backend, standbys, err);
}
