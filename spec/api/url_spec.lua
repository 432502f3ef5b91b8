-- sessile.url_check and sessile.address_check. tests/unit/screen has the corpus of attacks.

local expect = require "spec.support.expect"
local sessile = require "sessile"
local has = expect.has

describe("sessile.url_check", function()
  it("lets ordinary texts pass", function()
    assert.is_true(sessile.url_check "see https://example.org/a, and http://münchen.de")
    assert.is_true(sessile.url_check "")
    assert.is_true(sessile.url_check "no URL // here: 10.0.0.1")
  end)

  it("says what is refused, where and by which rule", function()
    local text = "see https://example.org and http://0x7f.1:80/x"
    local ok, message, code, found = sessile.url_check(text)
    assert.is_nil(ok)
    has(message, "a loopback address")
    assert.equal("EDENIED", code)
    assert.same({ rule = "loopback", url = "http://0x7f.1:80", at = 29 }, found)
    assert.equal(found.url, text:sub(found.at, found.at + #found.url - 1))
    local rules = { ["http://①⑥⑨.254.169.254/"] = "metadata", ["file:///etc/passwd"] = "scheme",
      ["http://[::ffff:10.0.0.1]"] = "private", ["http://example.org@localhost"] = "local-name",
      ["http://10.0.0.1.nip.io"] = "address-name", ["http://wiki/"] = "one-label",
      ["http://127.0.0.1%00.example.org"] = "not-a-host", ["http://a\0b"] = "one-label" }
    for url, rule in pairs(rules) do
      assert.equal(rule, select(4, sessile.url_check(url)).rule, url)
    end
  end)

  it("lets pass what is allowed, and only that if asked", function()
    local allow = { "localhost:3000", ".example.org", "10.0.0.0/8" }
    for url, other in pairs { ["http://localhost:3000/"] = "http://localhost:3001/",
      ["http://10.1.2.3/"] = "http://192.168.0.1/" } do
      assert.is_true(sessile.url_check(url, { allow = allow }))
      assert.is_nil(sessile.url_check(other, { allow = allow }))
    end
    local only = { allow = allow, only_allowed = true }
    assert.is_true(sessile.url_check("https://a.example.org/", only))
    assert.is_true(sessile.url_check("https://example.com/", { allow = allow }))
    assert.equal("not-allowed", select(4, sessile.url_check("https://example.com/", only)).rule)
    assert.equal("not-allowed",
      select(4, sessile.url_check("https://example.org", { only_allowed = true })).rule)
  end)

  it("keeps its list while garbage is collected", function()
    local allow = {}
    for i = 1, 200 do
      allow[i] = "host" .. i .. ".corp:80"
    end
    collectgarbage "collect"
    assert.is_true(sessile.url_check("http://host200.corp/", { allow = allow }))
  end)

  it("refuses a wrong list, and raises for wrong options", function()
    local ok, message, code, found =
      sessile.url_check("x", { allow = { "example.org", "http://x/" } })
    assert.is_nil(ok)
    assert.is_nil(found)
    has(message, "allow: item 2")
    assert.equal("EINVALID", code)
    assert.has_error(function() sessile.url_check(7) end)
    assert.has_error(function() sessile.url_check("x", { allow = "localhost" }) end)
    assert.has_error(function() sessile.url_check("x", { allowed = {} }) end)
  end)
end)

describe("sessile.address_check", function()
  it("judges the address of a connection", function()
    assert.is_true(sessile.address_check "8.8.8.8")
    assert.is_true(sessile.address_check "2606:4700:4700::1111")
    for address, part in pairs { ["127.0.0.1"] = "127.0.0.0/8", ["::1"] = "::1",
      ["::ffff:10.0.0.1"] = "10.0.0.0/8", ["168.63.129.16"] = "metadata",
      ["ff02::1"] = "multicast" } do
      local ok, message, code = sessile.address_check(address)
      assert.is_nil(ok)
      has(message, part)
      assert.equal("EDENIED", code)
    end
  end)

  it("lets pass what is allowed on its port", function()
    local allow = { "localhost:3000", "10.0.0.0/8" }
    assert.is_true(sessile.address_check("127.0.0.1", { allow = allow, port = 3000 }))
    assert.is_nil(sessile.address_check("127.0.0.1", { allow = allow, port = 3001 }))
    assert.is_nil(sessile.address_check("127.0.0.1", { allow = allow }))
    assert.is_true(sessile.address_check("10.9.9.9", { allow = allow }))
  end)

  it("takes an address in its usual form only", function()
    for _, text in ipairs { "", "localhost", "127.1", "0x7f.0.0.1", "[::1]", "1.2.3.4:80" } do
      local ok, message, code = sessile.address_check(text)
      assert.is_nil(ok)
      has(message, "an address is written as")
      assert.equal("EINVALID", code)
    end
    assert.has_error(function() sessile.address_check("8.8.8.8", { port = 65536 }) end)
    assert.has_error(function() sessile.address_check() end)
  end)
end)
