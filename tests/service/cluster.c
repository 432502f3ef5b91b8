/* cluster.c: see cluster.h. */
#include "service/cluster.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* "postgresql://USER:PASSWORD@HOST1:PORT,HOST2:PORT/sessile?…": the two have the same
 * users. */
static char *url_of_both(const cluster *c)
{
    const char *one = c->server[0]->tcp, *two = strchr(c->server[1]->tcp, '@') + 1;
    const char *path = strchr(strchr(one, '@'), '/');
    size_t room = strlen(one) + strlen(two) + 100;
    char *url = malloc(room);
    snprintf(url, room,
             "%.*s,%.*s%s?target_session_attrs=read-write&connect_timeout=2"
             "&tcp_user_timeout=3000",
             (int)(path - one), one, (int)strcspn(two, "/"), two, path);
    return url;
}

cluster *cluster_needed(int with_redis)
{
    const char *why = "";
    cluster *c = calloc(1, sizeof *c);
    c->net = network_open(0, &why);
    if (c->net) {
        c->db[0] = network_host(c->net, "db1");
        c->db[1] = network_host(c->net, "db2");
        c->server[0] = postgres_in(c->net, c->db[0], NULL, &why);
    }
    if (c->server[0])
        c->server[1] = postgres_in(c->net, c->db[1], c->server[0], &why);
    if (!c->server[1]) {
        print_message("# there is no cluster: %s\n", why);
        cluster_close(c);
        skip();
    }
    c->url = url_of_both(c);
    if (with_redis)
        c->redis = redis_needed_in(c->net, network_host(c->net, "redis"));
    return c;
}

void cluster_close(cluster *c)
{
    if (!c)
        return;
    if (c->redis)
        redis_free(c->redis);
    /* at once: nothing waits for an answer through a link that is cut */
    for (int i = 0; i < 2; i++) {
        if (c->server[i])
            network_signal(c->net, c->db[i], SIGKILL);
        postgres_own_free(c->server[i]);
    }
    network_close(c->net);
    free(c->url);
    free(c);
}

void cluster_promote(cluster *c)
{
    int standby = 1 - c->primary;
    assert_int_equal(postgres_do(c->server[standby], "promote"), 0);
    c->primary = standby;
}

void cluster_rebuild(cluster *c)
{
    const char *why;
    int old = 1 - c->primary;
    network_signal(c->net, c->db[old], SIGKILL);
    postgres_own_free(c->server[old]);
    c->server[old] = postgres_in(c->net, c->db[old], c->server[c->primary], &why);
    if (!c->server[old])
        fail_msg("the old primary does not become a standby: %s", why);
}

void service_node_start(network *n, service_node *node)
{
    node->pid = network_run(n, node->host, &node->program);
    if (network_wait_port(n, node->host, node->port, node->pid))
        fail_msg("%s ended before it answered at port %d of %s (its output: %s)",
                 node->program.argv[0], node->port, network_name(n, node->host),
                 node->program.log ? node->program.log : "above");
}

int service_node_end(service_node *node, int signal)
{
    int status = 0;
    if (node->pid > 0) {
        kill(node->pid, signal);
        waitpid(node->pid, &status, 0);
    }
    node->pid = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
