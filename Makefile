# sessile: build, test, install.
#
#   make demo     install what is missing, build, run the demonstration
#   make test     install what is missing, build, run every test
#   make help     all targets
#
# Only what tests or measures, `demo` and `deps` may call apt-get, and only for packages that
# are absent; `make` alone compiles, or says which are (DEPS=no: libraries of your own are used
# instead). Dependencies are plain -l flags, so that this file can be
# read on a machine which has no compiler yet.

VERSION := $(shell sed -n 's/^.define SESSILE_VERSION "\(.*\)"/\1/p' engine/include/sessile.h 2>/dev/null)
PREFIX  ?= /usr/local
DESTDIR ?=
BUILD   ?= build

BUILD_PACKAGES := gcc libc6-dev binutils lua5.4 liblua5.4-dev uuid-dev libsodium-dev \
                  libmodpbase64-dev libzstd-dev libpcre2-dev libssl-dev lua-argparse
BUILD_PACKAGES += libsqlite3-dev libpq-dev libcurl4-openssl-dev libidn2-dev libstemmer-dev libutf8proc-dev
BUILD_PACKAGES += libcmark-gfm-dev libcmark-gfm-extensions-dev libncurses-dev libedit-dev
BUILD_PACKAGES += libhiredis-dev
# For the server and its clients. Without them everything else is built.
SERVICE_PACKAGES := libnghttp2-dev libprotobuf-c-dev protobuf-c-compiler
TEST_PACKAGES  := pkg-config libcmocka-dev libcjson-dev lua-busted postgresql redis-server sqlite3 luajit libfaketime
# For schema.so, JSON Schema by a library in C++. Without them everything else is built.
SCHEMA_PACKAGES := g++ libvalijson-dev rapidjson-dev
TEST_PACKAGES  += $(SCHEMA_PACKAGES) $(SERVICE_PACKAGES)
# For the module for LuaJIT, where there is also a static library of Lua 5.4. Without them everything
# else is built.
LUAJIT_PACKAGES := libluajit-5.1-dev
TEST_PACKAGES  += $(LUAJIT_PACKAGES)
# Foreign ends of gRPC and HTTP, and Google's own JSON of messages, which judge ours; a test says so when
# its own is absent.
TEST_PACKAGES  += python3-grpcio python3-protobuf protobuf-compiler grpc-proto nghttp2-client curl openssl
# For promtool, which judges /metrics: 19 MB that no smaller package has. Its server is not started (.ci/deps).
TEST_PACKAGES  += prometheus
CHECK_PACKAGES := clang-format-14 lua-check cppcheck lua-socket lua-sec
BENCH_PACKAGES := libsqlite3-dev postgresql redis-server openssl $(SERVICE_PACKAGES) luajit $(LUAJIT_PACKAGES)
SOAK_PACKAGES  := clang libclang-rt-14-dev neovim
# What looks at terminals and pages as a person does; specs that need one say so without it.
VIEW_PACKAGES  := tmux chromium zsh fish man-db neovim

# Said before anything is compiled.
COMPILING := $(filter all build everything install service,$(or $(MAKECMDGOALS),all))
MISSING   := $(if $(COMPILING),$(if $(filter no,$(DEPS)),,$(shell .ci/deps --missing $(BUILD_PACKAGES))))
$(if $(MISSING),$(error Packages are missing. As root, type: apt-get install $(MISSING)))

# ---- flags ---------------------------------------------------------------------------
# OPT and HARDEN are what the other builds (asan, coverage) replace. CFLAGS, CPPFLAGS and
# LDFLAGS are left to the person who types them.

OBJCOPY  ?= objcopy
OPT       := -O2
HARDEN    := -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
WARN      := -Werror=incompatible-pointer-types -Werror=int-conversion -Wall -Wextra -Wpedantic -Wshadow=local -Wstrict-prototypes -Wmissing-prototypes
WARN      += $(if $(WERROR),-Werror)
BASE      := -std=c11 -D_GNU_SOURCE -g -fPIC -fno-plt -pthread
COMPILE    = $(CC) $(BASE) $(OPT) $(HARDEN) $(WARN) -MMD -MP
LINK       = $(CC) -pthread $(OPT) $(LDFLAGS) -Wl,-z,relro,-z,now

LUA_INCLUDE ?= /usr/include/lua5.4
LUA_LIB     ?= -llua5.4
# Its code becomes a hidden part of libsessile; empty: libsessile is linked with LUA_LIB instead.
LUA_STATIC  ?= $(if $(filter -llua5.4,$(LUA_LIB)),$(wildcard $(shell $(CC) -print-file-name=liblua5.4.a 2>/dev/null)))
ENGINE_LIBS := -lsodium -luuid -lmodpbase64 -lzstd -lpcre2-8 -lstemmer -lutf8proc -lsqlite3 -lm
LIBS        := $(ENGINE_LIBS) $(LUA_LIB)
TEST_LIBS   := -lcmocka -lcjson
SERVICE_LIBS := -lnghttp2 -lssl -lcrypto -lprotobuf-c -lcurl
# What only the executable is linked with: pages, screens, typed lines.
COMMAND_LIBS := -lcmark-gfm -lcmark-gfm-extensions -lncursesw -ltinfo -ledit

# ---- files ---------------------------------------------------------------------------

OBJ     := $(BUILD)/obj
FLOORS  := base codec vault store store/file store/sqlite store/postgres store/hosted log tokens \
           context session audit limit screen guard memory proposal history remember operations admin policy run memory_run api
objects  = $(patsubst %.c,$(OBJ)/%.o,$(1))
sources  = $(sort $(wildcard $(1)))

ENGINE  := $(call objects,$(call sources,$(FLOORS:%=engine/%/*.c)))
COMMAND := $(call objects,$(call sources,engine/command/*.c))
WORKERS := $(call objects,$(call sources,engine/worker/*.c))
BINDING := $(call objects,$(call sources,lua/binding/*.c))
# The server is the executable with one more module; the rest of it is shared with its tests.
MODULE  := $(call objects,$(call sources,engine/service/module*.c))
SERVICE := $(filter-out $(MODULE),$(call objects,$(call sources,engine/rpc/*.c engine/service/*.c)))
PROTOS  := $(patsubst engine/service/%.proto,%,$(call sources,engine/service/*.proto))
PROTO   := $(BUILD)/proto/service/sessile.pb-c
SUPPORT := $(call objects,$(call sources,tests/support/*.c))
# A test is one program, whichever folder it lives in: a floor's in unit, or a part of the harness.
UNIT_DIRS := $(patsubst tests/%/,%,$(sort $(wildcard tests/unit/*/)))
TEST_DIRS := $(UNIT_DIRS) crash fault kill model tamper store nodes service
TEST_C    := $(call sources,$(TEST_DIRS:%=tests/%/test_*.c))
TESTS     := $(TEST_C:tests/%.c=$(BUILD)/tests/%)
# What is no test_x.c in store/, nodes/ or service/ is shared by the programs there.
STORE_SHARED := $(call objects,$(filter-out tests/store/test_%,$(call sources,tests/store/*.c)))
MODEL_SHARED := $(call objects,$(filter-out tests/model/test_%,$(call sources,tests/model/*.c)))
NODES_SHARED := $(call objects,$(filter-out tests/nodes/test_%,$(call sources,tests/nodes/*.c)))
# A store as somebody else would build it, for the suite: shared/x.c is tests/store/x.so.
STORE_OBJECTS := $(patsubst tests/store/shared/%.c,$(BUILD)/tests/store/%.so,\
                   $(call sources,tests/store/shared/*.c))
# fuzz/fuzz_x.c is the program fuzz/x; what else is in that folder they share, but for the
# driver, which libFuzzer takes the place of.
FUZZERS   := $(patsubst tests/fuzz/fuzz_%.c,$(BUILD)/fuzz/%,$(call sources,tests/fuzz/fuzz_*.c))
FUZZ_SHARED  := $(call objects,$(filter-out tests/fuzz/fuzz_% tests/fuzz/driver.c,\
                               $(call sources,tests/fuzz/*.c)))
FUZZ_DRIVER  ?= $(OBJ)/tests/fuzz/driver.o
# bench/x.c is the program bench/x, but for what they share. SQLite is a peer to measure, where
# its header is there.
BENCH_SHARED := $(call objects,$(addprefix tests/bench/,measure.c floor.c sqlite.c \
                  backends.c bare_file.c bare_sqlite.c bare_postgres.c peers.c \
                  memory_texts.c memory_search.c))
SERVICE_BENCH := $(call objects,$(call sources,tests/bench/service_*.c))
BENCHES := $(filter-out $(BENCH_SHARED:$(OBJ)/tests/%.o=$(BUILD)/%) $(SERVICE_BENCH:$(OBJ)/tests/%.o=$(BUILD)/%),\
             $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(call sources,tests/bench/*.c)))
BENCH_LIBS := $(if $(wildcard /usr/include/sqlite3.h),-lsqlite3) \
              $(if $(wildcard /usr/include/postgresql/libpq-fe.h),-lpq)
SAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(call sources,examples/*.c))
HEADERS := $(call sources,engine/include/*.h)

# policy/lua_*: JSON and states as Lua values, one rule for policies and for Lua hosts. Their
# headers are all that the binding sees of the engine beside sessile.h.
SHARED_H := $(call sources,engine/policy/lua_*.h)
SHARED_H := $(SHARED_H:engine/%=$(BUILD)/include/%)

A    := $(BUILD)/libsessile.a
SO   := $(BUILD)/libsessile.so.$(VERSION)
CORE := $(if $(BINDING),$(BUILD)/lua/sessile/core.so)
# The module for LuaJIT, whose interface of C is that of Lua 5.1. It has a Lua 5.4 of its own.
LUAJIT_INCLUDE ?= /usr/include/luajit-2.1
HAS_LUAJIT := $(and $(LUA_STATIC),$(if $(SANITIZED),,yes),$(wildcard $(LUAJIT_INCLUDE)/lua.h))
CORE_JIT := $(if $(HAS_LUAJIT),$(BUILD)/luajit/sessile/core.so)
BINDING_JIT := $(patsubst %.c,$(OBJ)/luajit/%.o,$(call sources,lua/binding/*.c) \
                 $(filter-out %/lua_config.c,$(call sources,engine/policy/lua_*.c)))
BIN  := $(if $(COMMAND),$(BUILD)/bin/sessile)
# The executable with a clock that specs set.
CLOCKED := $(if $(COMMAND),$(BUILD)/clock/sessile)
# What writes events for specs.
AUDITOR := $(if $(ENGINE),$(BUILD)/audit/write)
WORKER := $(if $(WORKERS),$(BUILD)/libexec/sessile-worker)
SERVER := $(if $(wildcard engine/service/module.c),$(BUILD)/libexec/sessile-server)
# The client of a server of records: loaded when a store's URL asks for it.
REMOTES := $(call objects,$(call sources,engine/remote/*.c))
REMOTE := $(if $(REMOTES),$(BUILD)/libexec/libsessile-remote.so)
# JSON Schema, where a C++ compiler and the headers are.
VALIJSON    ?= /usr/include/valijson
HAS_SCHEMA  := $(and $(shell command -v $(CXX)),$(wildcard $(VALIJSON)/validator.hpp),\
                 $(wildcard /usr/include/rapidjson/document.h))
SCHEMA := $(if $(HAS_SCHEMA),$(BUILD)/libexec/schema.so)
# Vocabularies to count tokens with, as files that are mapped.
ENCODINGS := $(patsubst engine/tokens/data/%.zst,$(BUILD)/share/sessile/encodings/%.bpe,\
               $(call sources,engine/tokens/data/*.zst))

.PHONY: always all build service demo test check asan tsan valgrind bench coverage install clean help deps
.PHONY: deps-build deps-test deps-check deps-bench deps-soak
.PHONY: format accuracy mutants everything stores guarded threaded warnings headers lint fuzz fuzzers benches promises soak npm-tools foreign
.DELETE_ON_ERROR:
.SECONDARY:

all: build
always:
build: $(A) $(if $(ENGINE),$(SO)) $(CORE) $(CORE_JIT) $(BIN) $(WORKER) $(SCHEMA) $(ENCODINGS) $(BUILD)/sessile.pc
	$(if $(SCHEMA),,@echo 'Built without JSON Schema, which needs: $(SCHEMA_PACKAGES)')
	$(if $(CORE_JIT),,$(if $(SANITIZED),,@echo 'Built without the module for LuaJIT, which needs: $(LUAJIT_PACKAGES), and liblua5.4.a'))
service: $(SERVER) $(REMOTE)
everything: build service $(BUILD)/internal.a $(TESTS) $(CLOCKED) $(AUDITOR) $(STORE_OBJECTS) $(FUZZERS) $(BENCHES) $(SAMPLES) \
            $(BUILD)/accuracy/retrieval $(BUILD)/proto/service/sessile_pb2.py

# ---- objects -------------------------------------------------------------------------
# Each kind of source sees only the headers it may use.

$(OBJ)/engine/policy/%.o $(OBJ)/engine/command/%.o $(OBJ)/engine/worker/%.o: DOOR = -I$(LUA_INCLUDE)
$(OBJ)/engine/session/store_handle.o $(OBJ)/engine/store/remote.o $(OBJ)/engine/screen/schema.o: DOOR = -DSESSILE_LIBEXEC='"$(PREFIX)/libexec/sessile"'
$(OBJ)/engine/tokens/encoding.o: DOOR = -DSESSILE_SHARE='"$(PREFIX)/share/sessile"'
$(OBJ)/engine/command/sessile.o: DOOR = -I$(LUA_INCLUDE) -DSESSILE_PREFIX='"$(P)"'
# Built again for another prefix.
$(OBJ)/engine/session/store_handle.o $(OBJ)/engine/store/remote.o $(OBJ)/engine/screen/schema.o $(OBJ)/engine/tokens/encoding.o \
$(OBJ)/engine/command/sessile.o: $(OBJ)/prefix
$(OBJ)/prefix: always
	@mkdir -p $(@D)
	@echo '$(PREFIX)' | cmp -s - $@ || echo '$(PREFIX)' > $@
$(OBJ)/engine/codec/%.o: DOOR = -I/usr/include/uuid
$(OBJ)/engine/store/postgres/%.o: DOOR = -I/usr/include/postgresql
$(OBJ)/tests/bench/bare_postgres.o $(OBJ)/tests/support/postgres_stores.o \
$(OBJ)/tests/unit/store/test_postgres.o $(OBJ)/tests/unit/store/test_postgres_%.o \
$(OBJ)/tests/unit/limit/test_limit_postgres.o: DOOR = -I/usr/include/postgresql

$(OBJ)/engine/%.o: engine/%.c Makefile
	@mkdir -p $(@D)
	$(COMPILE) -DSESSILE_BUILD -fvisibility=hidden -Iengine -Iengine/include $(DOOR) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# The binding is a client like any other: the public header, Lua, and the shared headers,
# copied to where nothing else of the engine can be seen. Default visibility, because Lua's
# macros declare luaopen_*; core.map then exports nothing else.
BINDING_CPPFLAGS = -Iengine/include -Ilua/binding -I$(BUILD)/include -I$(LUA_INCLUDE)

$(BUILD)/include/policy/%.h: engine/policy/%.h
	@mkdir -p $(@D)
	@cp $< $@

$(OBJ)/lua/binding/%.o: lua/binding/%.c Makefile | $(SHARED_H)
	@mkdir -p $(@D)
	$(COMPILE) $(BINDING_CPPFLAGS) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# For LuaJIT: the same files, and those of engine/policy that convert values.
$(OBJ)/luajit/%.o: %.c lua/binding/compat51.h Makefile | $(SHARED_H)
	@mkdir -p $(@D)
	$(COMPILE) -include lua/binding/compat51.h -DSESSILE_BUILD -fvisibility=hidden -Iengine -Iengine/include \
	    -Ilua/binding -I$(LUAJIT_INCLUDE) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(OBJ)/tests/%.o: tests/%.c Makefile
	@mkdir -p $(@D)
	$(COMPILE) -Iengine -Iengine/include -Itests -I$(LUA_INCLUDE) $(DOOR) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(OBJ)/examples/%.o: examples/%.c Makefile
	@mkdir -p $(@D)
	$(COMPILE) -DPOLICIES='"$(CURDIR)/policies"' -Iengine/include $(CPPFLAGS) $(CFLAGS) -c $< -o $@

# ---- the library ---------------------------------------------------------------------
# One object in which every hidden name is local: no internal name can meet a host's. It contains the
# parts of Lua 5.4 that the engine uses, also as local names: the host may have a Lua of another version.
WHOLE    := $(OBJ)/sessile.o
OWN_LUA  := $(if $(LUA_STATIC),$(OBJ)/lua.a)
SO_LIBS  := $(ENGINE_LIBS) $(if $(OWN_LUA),,$(LUA_LIB))
# Streams of the C library are variables, which code compiled for programs reads in a way that a shared
# library cannot contain.
$(OBJ)/lua.a: $(LUA_STATIC) Makefile
	@mkdir -p $(@D)
	$(OBJCOPY) $(foreach stream,stdin stdout stderr,--redefine-sym $(stream)=own_lua_$(stream)) $< $@
# Made again when the Lua of its own comes or goes.
$(OBJ)/own-lua: always
	@mkdir -p $(@D)
	@echo '$(LUA_STATIC)' | cmp -s - $@ || echo '$(LUA_STATIC)' > $@
$(OBJ)/engine.o: $(ENGINE) $(OWN_LUA) $(OBJ)/own-lua
	$(LD) -r -o $@ $(ENGINE) $(OWN_LUA)
$(WHOLE): $(OBJ)/engine.o
	$(OBJCOPY) --wildcard --keep-global-symbol='sessile_*' $< $@

$(A): $(if $(ENGINE),$(WHOLE))
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

# The same objects, names intact, for tests that look inside.
$(BUILD)/internal.a: $(ENGINE)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(SO): $(WHOLE)
	@mkdir -p $(@D)
	$(LINK) -shared $(if $(SANITIZED),,-Wl,-z,defs) -Wl,-soname,libsessile.so.0 -o $@ $^ $(SO_LIBS)
	@ln -sf $(@F) $(BUILD)/libsessile.so.0
	@ln -sf $(@F) $(BUILD)/libsessile.so

fill_pc = sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' \
              -e 's|@LIBS@|$(SO_LIBS) -ldl -pthread|' engine/sessile.pc.in
$(BUILD)/sessile.pc: engine/sessile.pc.in Makefile
	@mkdir -p $(@D)
	@$(fill_pc) > $@

# ---- programs and the Lua module -----------------------------------------------------

$(BIN): $(COMMAND) $(BINDING) $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) -Wl,-E -o $@ $^ $(LIBS) -Wl,--as-needed $(COMMAND_LIBS)

$(CLOCKED): $(OBJ)/tests/clock/clock.o $(COMMAND) $(BINDING) $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) -Wl,-E -o $@ $^ $(LIBS) -Wl,--as-needed $(COMMAND_LIBS)

$(AUDITOR): $(OBJ)/tests/audit/write_audit.o $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(LIBS)

$(WORKER): $(WORKERS) $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(LIBS)

# The messages of the service, from their descriptions. What protoc-c writes is not linted.
$(BUILD)/proto/service/%.pb-c.c $(BUILD)/proto/service/%.pb-c.h: engine/service/%.proto
	@mkdir -p $(@D)
	protoc-c --c_out=$(@D) -Iengine/service $<
RECORD_PROTO := $(BUILD)/proto/service/records.pb-c
MEMORY_PROTO := $(BUILD)/proto/service/memory.pb-c
# Those of the tests of JSON, which have every kind of field.
KINDS := $(BUILD)/proto/service/kinds.pb-c
$(KINDS).c $(KINDS).h &: tests/unit/service/kinds.proto engine/service/sessile.proto
	@mkdir -p $(@D)
	protoc-c --c_out=$(@D) -Iengine/service -Itests/unit/service $<
$(OBJ)/tests/unit/service/test_json.o $(OBJ)/tests/unit/service/test_json_limits.o $(OBJ)/tests/fuzz/fuzz_json_message.o: | $(PROTO).h $(KINDS).h
$(OBJ)/tests/fuzz/fuzz_json_message.o $(OBJ)/tests/fuzz/fuzz_request.o: DOOR = -I$(BUILD)/proto
$(OBJ)/tests/fuzz/fuzz_request.o $(OBJ)/tests/fuzz/fuzz_remote_url.o: | $(PROTO).h $(RECORD_PROTO).h $(MEMORY_PROTO).h
$(OBJ)/tests/fuzz/fuzz_remote_url.o: DOOR = -I$(BUILD)/proto
$(OBJ)/proto/%.o: $(BUILD)/proto/service/%.c
	@mkdir -p $(@D)
	$(CC) $(BASE) $(OPT) $(HARDEN) -w -MMD -MP -c $< -o $@

# What reflection tells of them: the bytes of a FileDescriptorSet, as the elements of an array. The
# older name of reflection has the same messages.
REFLECTED := $(BUILD)/proto/service/reflection_v1alpha.proto
$(REFLECTED): engine/service/reflection.proto
	@mkdir -p $(@D)
	sed 's/^package grpc.reflection.v1;/package grpc.reflection.v1alpha;/' $< > $@
$(BUILD)/proto/service/descriptors.h: $(PROTOS:%=engine/service/%.proto) $(REFLECTED)
	@mkdir -p $(@D)
	protoc-c --include_imports --descriptor_set_out=$(@:.h=.bin) -Iengine/service -I$(@D) $^
	od -An -v -tu1 $(@:.h=.bin) | sed 's/ *\([0-9][0-9]*\)/\1,/g' > $@
$(OBJ)/engine/service/reflection.o: $(BUILD)/proto/service/descriptors.h

# The same for clients in Python, which tests are.
$(BUILD)/proto/service/%_pb2.py: engine/service/%.proto
	@mkdir -p $(@D)
	protoc --python_out=$(@D) -Iengine/service $<

$(OBJ)/engine/rpc/%.o $(OBJ)/engine/service/%.o: DOOR = -I$(BUILD)/proto
$(OBJ)/tests/service/%.o $(OBJ)/tests/unit/service/%.o $(SERVICE_BENCH) $(OBJ)/tests/bench/service.o: DOOR = -I$(BUILD)/proto
$(OBJ)/tests/unit/service/test_methods_asked.o: DOOR = -I$(BUILD)/proto -I/usr/include/postgresql
PROTO_H := $(PROTOS:%=$(BUILD)/proto/service/%.pb-c.h)
SERVICE += $(PROTOS:%=$(OBJ)/proto/%.pb-c.o)
$(filter $(OBJ)/engine/service/%,$(SERVICE)): | $(PROTO_H)
$(OBJ)/tests/service/%.o $(OBJ)/tests/unit/service/%.o: | $(PROTO_H)
$(SERVICE_BENCH) $(OBJ)/tests/bench/service.o: | $(PROTO_H)
$(BUILD)/service.a: $(SERVICE)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(MODULE): DOOR = -Ilua/binding -I$(LUA_INCLUDE)
$(SERVER): $(MODULE) $(COMMAND) $(BINDING) $(BUILD)/service.a $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) -Wl,-E -o $@ $^ $(SERVICE_LIBS) $(LIBS) -Wl,--as-needed $(COMMAND_LIBS)

# It brings what it needs of base/ itself, and shows one function: whoever loads it, a host or
# the executable, may have other versions of the same names.
$(OBJ)/engine/remote/%.o: DOOR = -I$(BUILD)/proto
$(REMOTES): | $(RECORD_PROTO).h
REMOTE_OBJECTS := $(REMOTES) $(filter $(OBJ)/engine/rpc/%,$(SERVICE)) $(OBJ)/proto/records.pb-c.o
$(BUILD)/libexec/libsessile-remote.so: $(REMOTE_OBJECTS) $(BUILD)/internal.a
	@mkdir -p $(@D)
	@echo '{ global: remote_store_open; local: *; };' > $(OBJ)/remote.map
	$(LINK) -shared -Wl,--version-script=$(OBJ)/remote.map -Wl,--as-needed $(if $(SANITIZED),,-Wl,-z,defs) -o $@ $^ -lnghttp2 -lssl -lcrypto -lprotobuf-c $(ENGINE_LIBS)

# Two headers of valijson, changed by limits.sed, come before those of the system. A version
# in which there is nothing to change is refused.
$(BUILD)/include/valijson/%.hpp: $(VALIJSON)/%.hpp engine/screen/valijson/limits.sed
	@mkdir -p $(@D)
	@sed -f engine/screen/valijson/limits.sed $< > $@
	@grep -q 'schema_guards::regex' $@ || { echo '$<: limits.sed does not know this version'; rm -f $@; exit 1; }

CXX_COMPILE = $(CXX) -std=c++17 -g -fPIC -fvisibility=hidden -pthread $(OPT) $(HARDEN) -Wall -Wextra -MMD -MP
$(OBJ)/engine/screen/valijson/%.o: engine/screen/valijson/%.cpp Makefile \
        $(BUILD)/include/valijson/validator.hpp $(BUILD)/include/valijson/validation_visitor.hpp
	@mkdir -p $(@D)
	$(CXX_COMPILE) -DVALIJSON_USE_EXCEPTIONS=1 -I$(BUILD)/include -Iengine -Iengine/screen/valijson $(CPPFLAGS) -c $< -o $@

$(BUILD)/libexec/schema.so: $(OBJ)/engine/screen/valijson/schema.o
	@mkdir -p $(@D)
	$(CXX) -shared -pthread $(OPT) $(LDFLAGS) -Wl,-z,relro,-z,now -o $@ $^

# A program of the build turns each vocabulary into a file, once; it is not installed.
$(BUILD)/make-encoding: $(OBJ)/engine/tokens/data/make_encoding.o $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(LIBS)

MADE_BY := build image merge vocabulary
MADE_BY := $(MADE_BY:%=$(OBJ)/engine/tokens/encoding_%.o) $(OBJ)/engine/tokens/data/make_encoding.o
$(BUILD)/share/sessile/encodings/%.bpe: engine/tokens/data/%.zst $(MADE_BY) | $(BUILD)/make-encoding
	@mkdir -p $(@D)
	$(BUILD)/make-encoding $* $< $@

# Not linked with liblua: the host brings it, and two copies in one process crash. The
# version script exports luaopen_* alone.
$(CORE): $(BINDING) $(BUILD)/internal.a
	@mkdir -p $(@D)
	@echo '{ global: luaopen_*; local: *; };' > $(OBJ)/core.map
	$(LINK) -shared -Wl,--version-script=$(OBJ)/core.map -o $@ $^ $(ENGINE_LIBS)

# The engine's own conversions are for its own Lua, and as hidden as that.
$(OBJ)/engine-luajit.o: $(OBJ)/engine.o
	$(OBJCOPY) --wildcard --localize-symbol='!lua_config_*' \
	    $(foreach names,lua_* luaL_* luaopen_*,--localize-symbol='$(names)') $< $@
$(CORE_JIT): $(BINDING_JIT) $(OBJ)/engine-luajit.o
	@mkdir -p $(@D)
	@echo '{ global: luaopen_*; local: *; };' > $(OBJ)/core.map
	$(LINK) -shared -Wl,--version-script=$(OBJ)/core.map -o $@ $^ $(ENGINE_LIBS)

# A shared object with a store finds sessile_copy() and sessile_free() in the program.
$(filter $(BUILD)/tests/store/%,$(TESTS)): $(STORE_SHARED)
$(filter $(BUILD)/tests/store/%,$(TESTS)): EXPORT = -Wl,-E
# A store behind a server, which is a process of the tests' own.
$(filter $(BUILD)/tests/store/%,$(TESTS)): $(BUILD)/service.a | $(REMOTE)
$(filter $(BUILD)/tests/store/%,$(TESTS)): MORE_LIBS = $(SERVICE_LIBS)
$(filter $(BUILD)/tests/model/%,$(TESTS)): $(MODEL_SHARED)
$(filter $(BUILD)/tests/nodes/%,$(TESTS)): $(NODES_SHARED)
# Tests of the service know what it is made of; a test is linked with what it uses of that.
OF_SERVICE := $(BUILD)/tests/service/% $(BUILD)/tests/unit/rpc/% $(BUILD)/tests/unit/service/%
SERVICE_SHARED := $(call objects,$(filter-out tests/service/test_%,$(call sources,tests/service/*.c)))
$(filter $(OF_SERVICE),$(TESTS)): $(BUILD)/service.a
$(filter $(OF_SERVICE),$(TESTS)): MORE_LIBS = $(SERVICE_LIBS)
$(filter $(BUILD)/tests/service/%,$(TESTS)): $(SERVICE_SHARED) $(addprefix $(OBJ)/tests/unit/rpc/,certificates.o program.o)
$(filter $(BUILD)/tests/unit/service/test_nodes_%,$(TESTS)): $(addprefix $(OBJ)/tests/unit/,service/trio.o rpc/certificates.o rpc/program.o)
# Methods called without a connection: the fake stands for engine/rpc, of which nothing is linked.
DIRECT := $(addprefix $(BUILD)/tests/unit/service/test_,methods methods_asked methods_core methods_disabled methods_guarded methods_tree methods_history methods_memory methods_recall pages requests lanes)
$(DIRECT): $(addprefix $(OBJ)/tests/unit/service/,fake_rpc.o fake_client.o direct.o)
$(BUILD)/tests/unit/service/test_methods_asked: $(addprefix $(OBJ)/tests/store/,counted.o minimal.o)
$(BUILD)/tests/unit/service/test_poked: $(OBJ)/tests/store/minimal.o
# Methods called over a connection, in one process.
SERVED := $(addprefix $(BUILD)/tests/unit/service/test_,events events_guarded json_queue json_refused shares strangers poked replies events_kept events_threads run_stream memory_stream memory_lists server_model clients observed pieces reflection one_request records_moved)
$(SERVED): $(OBJ)/tests/unit/service/serving.o
$(addprefix $(BUILD)/tests/unit/service/test_,events_guarded shares strangers): $(OBJ)/tests/unit/service/users.o
LINED := $(addprefix $(BUILD)/tests/unit/service/test_,report observed nodes_meet nodes_told)
$(LINED): $(OBJ)/tests/unit/service/lines.o
$(BUILD)/tests/unit/service/test_observed: $(addprefix $(OBJ)/tests/unit/rpc/,certificates.o program.o)
$(BUILD)/tests/unit/service/test_clients: $(OBJ)/tests/unit/rpc/program.o
$(addprefix $(BUILD)/tests/unit/service/test_,json_queue nodes_health replies strangers): $(OBJ)/tests/unit/rpc/wire.o
SLOW := $(addprefix $(BUILD)/tests/unit/service/test_,pieces memory_lists json_refused events_kept)
$(SLOW): $(addprefix $(OBJ)/tests/unit/,service/slow.o rpc/wire.o)
RPC_SHARED := $(call objects,$(filter-out tests/unit/rpc/test_%,$(call sources,tests/unit/rpc/*.c)))
$(filter $(BUILD)/tests/unit/rpc/%,$(TESTS)): $(RPC_SHARED)
$(BUILD)/tests/unit/service/test_json $(BUILD)/tests/unit/service/test_json_limits $(BUILD)/fuzz/json_message: $(OBJ)/proto/kinds.pb-c.o
$(BUILD)/tests/%: $(OBJ)/tests/%.o $(SUPPORT) $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) $(EXPORT) -o $@ $(call service_first,$^) $(TEST_LIBS) $(MORE_LIBS) $(LIBS)

$(BUILD)/tests/store/%.so: $(OBJ)/tests/store/shared/%.o $(OBJ)/tests/store/%.o
	@mkdir -p $(@D)
	$(LINK) -shared -o $@ $^

$(BUILD)/fuzz/url: $(OBJ)/tests/support/urls.o
$(BUILD)/fuzz/remote_url: $(OBJ)/engine/remote/url.o
# What the service is made of comes before the engine, which it uses.
service_first = $(filter %.o,$(1)) $(filter %/service.a,$(1)) $(filter-out %/service.a,$(filter %.a,$(1)))
WITH_SERVICE := $(patsubst %,$(BUILD)/fuzz/%,grpc_frame http1 http2 http_query json_message request telemetry) $(addprefix $(BUILD)/bench/,rpc service)
$(WITH_SERVICE): $(BUILD)/service.a
$(WITH_SERVICE): MORE_LIBS = $(SERVICE_LIBS)
# A fuzzer is a file with LLVMFuzzerTestOneInput; under gcc a driver of our own calls it.
$(BUILD)/fuzz/%: $(OBJ)/tests/fuzz/fuzz_%.o $(FUZZ_DRIVER) $(FUZZ_SHARED) $(BINDING) $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) $(FUZZ_LINK) -o $@ $(call service_first,$^) $(MORE_LIBS) $(LIBS)

$(BUILD)/bench/service: $(SERVICE_BENCH)
$(BUILD)/bench/jws: $(OBJ)/tests/support/signer.o
$(BUILD)/bench/%: $(OBJ)/tests/bench/%.o $(BENCH_SHARED) $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $(call service_first,$^) $(BENCH_LIBS) $(MORE_LIBS) $(LIBS)

$(BUILD)/examples/%: $(OBJ)/examples/%.o $(A)
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(SO_LIBS)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)

# ---- dependencies --------------------------------------------------------------------
# Says nothing and touches nothing when all is there.

deps: deps-check
deps-build:
	@.ci/deps $(BUILD_PACKAGES)
deps-test:
	@.ci/deps $(BUILD_PACKAGES) $(TEST_PACKAGES)
deps-check:
	@.ci/deps $(BUILD_PACKAGES) $(TEST_PACKAGES) $(CHECK_PACKAGES) $(VIEW_PACKAGES)
deps-bench:
	@.ci/deps $(BUILD_PACKAGES) $(BENCH_PACKAGES)
deps-soak:
	@.ci/deps $(BUILD_PACKAGES) $(TEST_PACKAGES) $(SOAK_PACKAGES)

# ---- what a person types -------------------------------------------------------------
# A second make, because the first has read this file before the packages were there.

again = $(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$$(nproc))

demo: deps-build
	@+$(again) --quiet build
	@$(BUILD)/bin/sessile demo

test: deps-test
	@+$(again) --quiet everything
	@BUILD=$(BUILD) tests/run

check: deps-check
	@+$(again) warnings
	@+$(again) lint headers
	@+$(again) --quiet everything
	@BUILD=$(BUILD) tests/run

# The tests of sessions over databases: those that are known to say nothing of files. What is slow over PostgreSQL, since each place is a schema
# that has to be made, and shows nothing that SQLite does not, is left to SQLite.
OVER_POSTGRES := unit/memory/test_memory$$ unit/operations/test_quota unit/operations/test_checkpoint unit/session/test_facts unit/operations/test_life unit/session/test_session$$ \
    unit/session/test_tree spec/policies/pending_run \
    $(addprefix spec/api/,branch list checkpoint child fork lifecycle pause search session turn)
OVER_SQLITE := $(OVER_POSTGRES) unit/memory/test_erase model/ unit/admin/test_search unit/operations/test_writers unit/operations/test_fork \
    unit/history/test_uncompact unit/session/test_meter spec/agent/killed spec/cli/keys \
    $(addprefix spec/api/,json keys label refusals)
# Behind a server of records each test starts one. `make soak` runs every spec so.
OVER_GRPC := $(addprefix spec/api/,changed fork turn)
stores: deps-test
	@+$(again) --quiet everything
	@BUILD=$(BUILD) tests/run --store sqlite $(OVER_SQLITE:%='%')
	@BUILD=$(BUILD) tests/run --store postgres $(OVER_POSTGRES:%='%')
	@BUILD=$(BUILD) tests/run --store grpc $(OVER_GRPC:%='%$$')

# Tests with a guard on each store, which have to hold as without one: those that do most with
# stores. `make soak` runs them all.
UNDER_GUARD := unit/operations/ unit/session/ spec/agent/loop spec/cli/basics \
    $(addprefix spec/api/,branch checkpoint fork lifecycle list memory$$ session$$ turn writers)
guarded: deps-test
	@+$(again) --quiet everything
	@BUILD=$(BUILD) tests/run --guard standard $(UNDER_GUARD:%='%')

# Every source once with -Werror, in a folder of its own.
warnings:
	@+$(again) --quiet BUILD=build-werror WERROR=1 everything

lint:
	@tests/layers
	@tests/style
	@luacheck --quiet --no-color $(wildcard lua policies spec examples tests)
	@tests/luajit/reads
	@cppcheck -j "$$(nproc)" --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 \
	    --quiet --library=posix --suppress=missingIncludeSystem --suppress=readdirCalled -Iengine -Iengine/include \
	    engine lua/binding

# Every source as .clang-format wants it.
format: deps-check
	@find engine lua/binding tests examples -name '*.[ch]' | xargs clang-format-14 -i

# Each public header alone, as C99 and as C++98.
headers:
	@CC="$(CC)" tests/headers $(HEADERS)

# The other builds are this build with other flags in another folder.
#
# Under AddressSanitizer a spec takes minutes where it starts the executable again and again, or
# keeps Lua busy for long, and runs next to no C that the C tests and the specs named here do not
# run too. LONG_TESTS wait for databases, networks and processes that are killed, or do one thing
# ten thousand times. CI leaves both to `make asan ALL=1`, which `make soak` calls.
ASAN_SPECS = $(addprefix spec/,agent/loop cli/serve api/guard api/memory api/session api/turn api/watch)
LONG_DIRS  = crash fault kill model nodes service store tamper
LONG_TESTS = $(filter $(LONG_DIRS:%=tests/%/%),$(TEST_C)) $(addprefix tests/unit/,admin/test_list_cache.c \
             admin/test_list_cache_files.c limit/test_limit_postgres.c memory/test_memory_index.c memory/test_memory_index_wrong.c \
             policy/test_policy_hostile.c store/test_postgres_replaced.c)
SPECS = $(patsubst %_spec.lua,%,$(shell find spec -name '*_spec.lua' | LC_ALL=C sort))
asan: deps-test
	@+$(again) --quiet BUILD=build-asan HARDEN= SANITIZED=1 everything OPT="-O1 \
	    -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined"
	@BUILD=build-asan TEST_ASAN=1 tests/run fuzz/ \
	    $(patsubst tests/%.c,'%$$',$(filter-out $(PROXIED) $(if $(ALL),,$(LONG_TESTS)),$(TEST_C))) \
	    $(foreach one,$(if $(ALL),$(SPECS),$(ASAN_SPECS)),'$(one)$$')

# Of the tests that start threads; ThreadSanitizer cannot follow the depth of others.
# nodes/ also starts processes beside the thread of a network, which it follows no better; nor
# does AddressSanitizer, whose allocator may be locked by that thread when it forks.
# Requests of test_json_refused would not arrive within their 10 s.
# CI leaves LONG_TESTS and the largest of the stores' to `make tsan ALL=1`.
THREADED = $(shell grep -lE 'pthread_create|waiter_start' $(filter-out $(PROXIED) tests/unit/service/test_json_refused.c $(if $(ALL),,$(LONG_TESTS)),$(TEST_C))) \
           $(if $(ALL),tests/store/test_backend.c) $(addprefix tests/unit/service/test_,events.c lanes.c pool.c poked.c replies.c run_stream.c strangers.c)
PROXIED  = tests/nodes/test_connection.c tests/nodes/test_proxy.c
tsan: deps-test
	@+$(again) --quiet BUILD=build-tsan OPT="-O1 -fsanitize=thread" HARDEN= SANITIZED=1 \
	    threaded
	@BUILD=build-tsan tests/run $(THREADED:tests/%.c='%$$')
threaded: $(THREADED:tests/%.c=$(BUILD)/tests/%) $(WORKER) $(ENCODINGS) $(REMOTE)

valgrind: deps-test
	@command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 1; }
	@+$(again) --quiet everything
	@BUILD=$(BUILD) TEST_WRAP="valgrind -q --error-exitcode=1 --leak-check=full" \
	    tests/run $(TEST_DIRS:%=%/)

# Bugs planted one by one in a copy of the engine: do the tests see them? MUTANTS names some.
mutants: deps-test
	@.ci/deps patch
	@+$(again) --quiet everything
	@+BUILD=$(BUILD) tests/mutants/run $(MUTANTS)

coverage: deps-test
	@mkdir -p build-coverage && find build-coverage -name "*.gcda" -delete
	@+$(again) --quiet BUILD=build-coverage OPT="-O0 --coverage" HARDEN= everything
	@BUILD=build-coverage tests/run $(TEST_DIRS:%=%/) spec/ || true
	@tests/coverage build-coverage

# The fuzzers under clang's libFuzzer, one after the other, each for FUZZ_SECONDS; FUZZ names
# some of them. (NULL + 0, which clang calls an overflow, is none.) What they found stays in
# build-fuzz/corpus, where the next run continues.
FUZZ_SECONDS ?= 60
fuzz: deps-soak
	@+$(again) --quiet fuzzers
	@+$(again) --quiet BUILD=build-fuzz CC=clang HARDEN= WARN= SANITIZED=1 FUZZ_DRIVER= \
	    FUZZ_LINK=-fsanitize=fuzzer OPT="-O1 -fno-omit-frame-pointer \
	    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=pointer-overflow \
	    -fno-sanitize-recover=undefined" fuzzers
	@BUILD=$(BUILD) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz/run $(FUZZ)
fuzzers: $(FUZZERS)

# What proves each promise, in its short form, as one table; and the same at full size, all of it
# or some parts: make soak SOAK="kill crash" SOAK_MINUTES=60.
promises: deps-test
	@+$(again) --quiet everything
	@BUILD=$(BUILD) tests/promises
soak: deps-soak
	@+$(again) --quiet everything
	@BUILD=$(BUILD) SOAK_MINUTES=$(SOAK_MINUTES) tests/soak $(SOAK)

# BENCH names some of them: make bench BENCH="append open". BENCH_SHORT=1: to see that they run.
bench: deps-bench
	@+$(again) --quiet benches
	@BUILD=$(BUILD) tests/bench/run $(if $(BENCH),$(BENCH),$(BENCHES:$(BUILD)/bench/%=%) luajit)
benches: $(BENCHES) $(BIN) $(WORKER) $(SERVER) $(ENCODINGS) $(CORE) $(CORE_JIT)

# Clients and suites of other people, from npm; FOREIGN names some of them. Never part of `test`.
foreign: build service
	@BUILD=$(BUILD) tests/foreign/run $(FOREIGN)

# How far token counts are from what a provider reported: make accuracy FILE=recording.jsonl; and
# how often a memory finds what answers a question: make accuracy LOCOMO=FOLDER (locomo10.json).
accuracy: build $(if $(LOCOMO),$(BUILD)/accuracy/retrieval)
	@$(if $(FILE)$(if $(LOCOMO),,x),$(BIN) run tests/accuracy/accuracy.lua $(FILE))
	@$(if $(LOCOMO),$(BUILD)/accuracy/retrieval $(LOCOMO)/locomo10.json)

$(BUILD)/accuracy/%: $(OBJ)/tests/accuracy/%.o $(BUILD)/internal.a
	@mkdir -p $(@D)
	$(LINK) -o $@ $^ $(LIBS)

# A folder where neither shells, Lua, compilers nor programs look.
P = $(abspath $(PREFIX))
say_environment = printf '%s\n' 'To use it from there, put these lines into your shell, or into its profile:' \
    'export PATH="$(P)/bin:$$PATH"' \
    'export LUA_PATH_5_4="$(P)/share/lua/5.4/?.lua;$(P)/share/lua/5.4/?/init.lua;;" LUA_CPATH_5_4="$(P)/lib/lua/5.4/?.so;;"' \
    'export PKG_CONFIG_PATH="$(P)/lib/pkgconfig" LD_LIBRARY_PATH="$(P)/lib"' \
    $(if $(CORE_JIT),'export LUA_PATH="$(P)/share/lua/5.1/?.lua;$(P)/share/lua/5.1/?/init.lua;;" LUA_CPATH="$(P)/lib/lua/5.1/?.so;;"')

# What needs Lua 5.4: the command line and its servers, the kit of tests of policies, the demonstration.
NOT_JIT := -not -path './cli/*' -not -path './rpc/*' -not -path './mcp/*' -not -path './testing/*' -not -name 'demo*.lua'
D = $(DESTDIR)$(PREFIX)
install: build
	install -d $(D)/include $(D)/lib/pkgconfig $(D)/lib/lua/5.4/sessile $(D)/bin \
	    $(D)/share/lua/5.4/sessile $(D)/share/sessile/policies \
	    $(D)/share/sessile/encodings
	$(if $(HEADERS),install -m 644 $(HEADERS) $(D)/include)
	install -m 644 $(A) $(D)/lib
	$(if $(ENGINE),install -m 755 $(SO) $(D)/lib)
	$(if $(ENGINE),cp -Pf $(BUILD)/libsessile.so.0 $(BUILD)/libsessile.so $(D)/lib)
	$(fill_pc) > $(D)/lib/pkgconfig/sessile.pc
	$(if $(CORE),install -m 755 $(CORE) $(D)/lib/lua/5.4/sessile)
	$(if $(BIN),install -m 755 $(BIN) $(D)/bin)
	$(if $(WORKER),install -D -m 755 $(WORKER) $(D)/libexec/sessile/sessile-worker)
	$(if $(wildcard $(REMOTE)),install -D -m 755 $(REMOTE) $(D)/libexec/sessile/libsessile-remote.so)
	$(if $(SCHEMA),install -D -m 755 $(SCHEMA) $(D)/libexec/sessile/schema.so)
	$(if $(wildcard $(SERVER)),install -D -m 755 $(SERVER) $(D)/libexec/sessile/sessile-server)
	$(if $(wildcard $(SERVER)),install -D -m 644 engine/service/sessile.service $(D)/lib/systemd/system/sessile.service)
	$(if $(wildcard $(SERVER)),sed -i 's|@PREFIX@|$(PREFIX)|' $(D)/lib/systemd/system/sessile.service)
	cd lua/sessile && find . -name '*.lua' \
	    -exec install -D -m 644 {} $(abspath $(D))/share/lua/5.4/sessile/{} \;
	$(if $(CORE_JIT),install -D -m 755 $(CORE_JIT) $(D)/lib/lua/5.1/sessile/core.so)
	$(if $(CORE_JIT),cd lua/sessile && find . $(NOT_JIT) -name '*.lua' \
	    -exec install -D -m 644 {} $(abspath $(D))/share/lua/5.1/sessile/{} \;)
	find policies -maxdepth 1 -name '*.lua' -exec install -m 644 {} $(D)/share/sessile/policies \;
	install -d $(D)/share/sessile/policies/screens
	install -m 644 $(wildcard policies/screens/*.lua) $(D)/share/sessile/policies/screens
	$(if $(ENCODINGS),install -m 644 $(ENCODINGS) $(D)/share/sessile/encodings)
	$(if $(wildcard examples/demo-session.jsonl),install -m 644 \
	    examples/demo-session.jsonl $(D)/share/sessile)
	$(if $(BIN),install -d $(D)/share/man/man1 $(D)/share/bash-completion/completions \
	    $(D)/share/zsh/site-functions $(D)/share/fish/vendor_completions.d)
	$(if $(BIN),$(BIN) man > $(D)/share/man/man1/sessile.1)
	$(if $(BIN),$(BIN) completions bash > $(D)/share/bash-completion/completions/sessile)
	$(if $(BIN),$(BIN) completions zsh > $(D)/share/zsh/site-functions/_sessile)
	$(if $(BIN),$(BIN) completions fish > $(D)/share/fish/vendor_completions.d/sessile.fish)
	@[ -n "$(DESTDIR)" ] || ! command -v ldconfig >/dev/null || \
	    ! ldconfig -v -N 2>/dev/null | grep -q '^$(PREFIX)/lib:' || \
	    echo 'Programs find libsessile.so once you have run: ldconfig'
	@[ -n "$(DESTDIR)" ] || case "$(PREFIX)" in /usr | /usr/local) ;; *) $(say_environment) ;; esac

# TypeScript, for the test of the types that `sessile rpc --types ts` prints. Nothing else needs it.
npm-tools:
	npm install --prefix $(BUILD)/npm --no-audit --no-fund typescript@5

clean:
	rm -rf build build-asan build-tsan build-coverage build-werror build-fuzz

help:
	@echo 'make           the library, the Lua module, the command'
	@echo 'make service   the server: sessile serve (needs: $(SERVICE_PACKAGES))'
	@echo 'make demo      install what is missing, build, show the main job'
	@echo 'make test      install what is missing, build, run every test'
	@echo 'make check     warnings as errors, layers, style, lint, headers, then every test'
	@echo 'make format    every C source as .clang-format wants it'
	@echo 'make asan      C tests and specs under AddressSanitizer and UBSan'
	@echo 'make tsan | valgrind   C tests under ThreadSanitizer, valgrind'
	@echo 'make stores    the tests of sessions over SQLite and PostgreSQL, and behind a server'
	@echo 'make guarded   specs with a guard on each store'
	@echo 'make foreign   clients and suites of other people, from npm (needs Node 20, npm)'
	@echo 'make promises  each promise, what proves it, and the figures: the short form'
	@echo 'make soak      the same at full size: hours (SOAK="kill crash" SOAK_MINUTES=10)'
	@echo 'make mutants    bugs planted one by one: do the tests see them?'
	@echo 'make fuzz      the fuzzers under libFuzzer (FUZZ="log line" FUZZ_SECONDS=60)'
	@echo 'make bench     what it costs, beside floors and SQLite (BENCH="append open")'
	@echo 'make accuracy FILE=recording   token counts beside what a provider reported'
	@echo 'make npm-tools TypeScript from npm, to check the types of sessile rpc'
	@echo 'make coverage  lines of engine/ that tests reach'
	@echo 'make install PREFIX=$(PREFIX) DESTDIR=;   make deps;   make clean'
	@echo 'One test:      tests/run NAME...   after make everything'
