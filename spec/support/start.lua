-- start.lua: busted loads it before the specs of a run (`helper` in .busted). Specs then find the
-- helpers of this folder as "spec.support.NAME", `tests/run --store` has their stores opened in a
-- database, and `tests/run --guard` with a guard.

local root = os.getenv "SESSILE_ROOT" or "."

package.path = root .. "/?.lua;" .. package.path
require "spec.support.elsewhere".install()
require "spec.support.guarded".install()
