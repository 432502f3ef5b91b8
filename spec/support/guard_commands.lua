-- guard_commands.lua: entries of cli/commands_spec.lua for the commands about a guard: who may do
-- what, the audit, and what users have a right to.

return {
  ["guard status"] = {
    plain = { "guard status", "There is no guard" },
    json = { "guard status", "on" },
    wrong = { "guard status now", 2, "sessile guard status" },
  },
  ["guard init"] = {
    plain = { "guard init", 'says now guard = "standard"' },
    json = { "guard init --config HOME/guard.lua", "path", "profile", "written" },
    wrong = { "guard init --profile strickt", 2, "--profile strict" },
  },
  ["whoami"] = {
    plain = { "whoami", "There is no guard" },
    json = { "whoami", "guard", "host" },
    wrong = { "whoami ann", 2, "sessile whoami" },
  },
  ["access grant"] = {
    before = "guard init",
    plain = { "access grant ann viewer --for 90d", "00000003\n" },
    json = { "access grant ann viewer --on talk", "id" },
    wrong = { "access grant ann", 2, "sessile access grant" },
  },
  ["access revoke"] = {
    before = { "guard init", "access grant ann viewer" },
    plain = { "access revoke 00000003", "has ended" },
    json = { "access revoke 00000003", "id", "revoked" },
    wrong = { "access revoke", 2, "sessile access revoke" },
  },
  ["access list"] = {
    before = { "guard init", "access grant ann viewer" },
    plain = { "access list", "grant", "ann", "viewer" },
    json = { "access list", "grants[1].user", "keys", "locks" },
    wrong = { "access list ann bob", 2, "sessile access list" },
  },
  ["access roles"] = {
    plain = { "access roles", "VIEWER", "view_session", "own" },
    json = { "access roles", "roles[1].role", "roles[4].permissions[1]", "permissions[1].allows" },
    wrong = { "access roles ann", 2, "sessile access roles" },
  },
  ["access key"] = {
    before = "guard init",
    plain = { "access key new ann --role editor", "sesk_" },
    json = { "access key new ann --role editor", "key", "roles[1]" },
    wrong = { "access key make ann", 2, "new" },
  },
  ["access explain"] = {
    before = { "guard init", "access grant ann viewer" },
    plain = { "access explain ann view_session", "yes: ann may view_session", "grant 00000003" },
    json = { "access explain ann delete_session", "allowed", "locked", "sources[1].because" },
    wrong = { "access explain ann view_sesion", 2, "view_session" },
  },
  ["access lock"] = {
    before = "guard init",
    plain = { "access lock ann", "locked out" },
    json = { "access lock ann", "who", "locked" },
    wrong = { "access lock", 2, "sessile access lock" },
  },
  ["access unlock"] = {
    before = { "guard init", "access lock ann" },
    plain = { "access unlock ann", "not locked out" },
    json = { "access unlock ann", "who", "locked" },
    wrong = { "access unlock", 2, "sessile access unlock" },
  },
  ["audit tail"] = {
    plain = { "audit tail -n 1", "turn" },
    json = { "audit tail", "[1].id", "[1].operation", "[1].name", "[1].time" },
    wrong = { "audit tail --for 3", 2, "--follow" },
  },
  ["audit show"] = {
    plain = { "audit show --no-pager", "bug-42" },
    json = { "audit show 00-000/00000002", "id", "operation", "user" },
    wrong = { "audit show 00-000/00000fff", 3, "audit tail --json" },
  },
  ["audit verify"] = {
    plain = { "audit verify", "chain intact" },
    json = { "audit verify", "holds", "root_from", "events", "unsealed" },
    wrong = { "audit verify --root 12", 2, "sessile audit root" },
  },
  ["audit root"] = {
    plain = { "audit root", "\n" },
    json = { "audit root", "root" },
    wrong = { "audit root --store HOME/none", 3, "sessile new" },
  },
  ["audit head"] = {
    plain = { "audit head", "EPOCH" },
    json = { "audit head", "[1].hash", "[1].lane", "[1].epoch" },
    wrong = { "audit head --root 12", 2, "sessile audit root" },
  },
  ["audit seal"] = {
    plain = { "audit seal", "sealed" },
    json = { "audit seal", "sealed" },
    wrong = { "audit seal --store HOME/none", 3, "sessile new" },
  },
  ["audit prove"] = {
    plain = { "audit prove --check HOME/proof", "vouches" },
    json = { "audit prove --check HOME/proof", "key", "event.operation" },
    wrong = { "audit prove 00-000/00000fff", 3, "audit tail --json" },
  },
  ["consent give"] = {
    plain = { "consent give coder 'remember me' --user ann", "ann consents" },
    json = { "consent give coder yes --user ann", "agent", "user", "given" },
    wrong = { "consent give coder yes", 2, "--user" },
  },
  ["consent withdraw"] = {
    plain = { "consent withdraw coder --user zoe --yes", "0 erased" },
    json = { "consent withdraw coder --user zoe --keep", "agent", "given", "erased" },
    wrong = { "consent withdraw coder --user zoe", 2, "--yes" },
  },
  ["consent list"] = {
    plain = { "consent list", "zoe", "given" },
    json = { "consent list", "consents[1].agent", "consents[1].given", "consents[1].entries" },
    wrong = { "consent list zoe", 2, "Usage" },
  },
  ["hold add"] = {
    plain = { "hold add 'case 7' --agent coder", "0000000" },
    json = { "hold add 'case 7' --user ann --until 90d", "id" },
    wrong = { "hold add 'case 7'", 1, "--user" },
  },
  ["hold list"] = {
    plain = { "hold list", "case 1" },
    json = { "hold list", "holds[1].id", "holds[1].reason" },
    wrong = { "hold list ann", 2, "Usage" },
  },
  ["hold release"] = {
    plain = { "hold release 1", "released" },
    json = { "hold release 00000001", "released" },
    wrong = { "hold release 77", 3, "hold list" },
  },
  ["user export"] = {
    plain = { "user export zoe HOME/zoe", "0 sessions, 1 memory" },
    json = { "user export zoe HOME/zoe", "user", "folder", "sessions", "memories", "files" },
    wrong = { "user export zoe HOME", 1, "another folder" },
  },
  ["user erase"] = {
    plain = { "user erase zoe --dry-run", "1 memory" },
    json = { "user erase zoe --yes", "subject", "shredded", "not_reached.forks" },
    wrong = { "user erase zoe", 2, "--yes" },
  },
}
