--- version: what a client and the server must agree on.

return {
  PROTOCOL = 1,       -- rpc/hello: it changes when a field changes its meaning
  MESSAGE = 64 << 20, -- bytes of a line (rpc.message)
}
