#include "rpc/http1.h"
#include "rpc/call.h"
int http1_begin(conn *c)
{
    (void)c;
    return -1;
}
void http1_pump(rpc_call *call)
{
    (void)call;
}
