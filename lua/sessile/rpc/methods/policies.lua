--- policies: policy/list.

return function(method)
  method("policy/list", "the policies that can be named", {}, "PolicyInfo[]",
    { of = "server", run = function()
      return require "sessile.cli.policy_names".list()
    end })
end
