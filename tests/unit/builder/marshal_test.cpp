// The interpreter itself is the oracle: what it writes under other hash seeds and sharing must come
// out as the same bytes, and those bytes must load to equal code.
#include "builder/bytecode/marshal.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/process.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kSource = R"py(
import os
NAMES = frozenset({"alpha", "beta", "gamma", b"raw", 3, 2.5, (1, "x")})
def outer(a, /, b=1, *c, d: int = 1 << 70, **e):
    """Text with é and a name_like string."""
    if a in {"one", "two", "three", "é", 1.5, -0.0, None, ...}:
        return lambda q: (q, "one", 1 << 70, 2j)
    class Inner:
        x: "annotation" = ["one", "two words"]
        def method(self): return __class__, "one", ("one", "two words"), ("one", "two words")
    return [i for i in range(10) if i in (1, 2, 3)], Inner
async def later(): return [x async for x in y]
LONG = "-" * 400
)py";

Captured python(std::string_view program, const std::string& seed, std::string_view input) {
  Command command{Purpose{"test"}};
  command.argv = {"/usr/bin/python3", "-c", std::string(program)};
  command.env = std::vector<std::string>{"PYTHONHASHSEED=" + seed, "PATH=/usr/bin:/bin"};
  return run_captured(command, std::chrono::seconds{60}, input);
}

int python_minor() {
  const Captured run = python("import sys; print(sys.version_info[1])", "0", "");
  return std::stoi(run.out);
}

std::string compiled(const std::string& seed, std::string_view before) {
  const std::string program =
      std::string(before) +
      "\nimport sys, marshal\n"
      "s = sys.stdin.read()\n"
      "sys.stdout.buffer.write(marshal.dumps(compile(s, '/x/m.py', 'exec')))\n";
  const Captured run = python(program, seed, kSource);
  EXPECT_EQ(run.exit.code, 0) << run.err;
  return run.out;
}

TEST(CanonicalMarshal, HashSeedAndSharingDoNotMatter) {
  const int minor = python_minor();
  const std::string first = compiled("1", "");
  // Holding the same strings elsewhere changes where the interpreter writes FLAG_REF.
  const std::string second = compiled("77", "keep = ['one', 'two words', 'alpha', 'x', 'outer']");
  const std::string canonical = canonical_marshal(as_bytes(first), minor);
  EXPECT_EQ(canonical, canonical_marshal(as_bytes(second), minor));
  EXPECT_EQ(canonical, canonical_marshal(as_bytes(canonical), minor)) << "idempotent";
}

TEST(CanonicalMarshal, LoadsToEqualCode) {
  const std::string canonical = canonical_marshal(as_bytes(compiled("5", "")), python_minor());
  const std::string program = R"py(
import sys, marshal
data = sys.stdin.buffer.read()
size = int.from_bytes(data[:4], "little")
def same(a, b):
    if type(a) is not type(b): return False
    if hasattr(a, "co_code"):
        return all(same(getattr(a, n), getattr(b, n)) for n in dir(a)
                   if n.startswith("co_") and not callable(getattr(a, n)))
    if isinstance(a, tuple): return len(a) == len(b) and all(map(same, a, b))
    return repr(a) == repr(b) if isinstance(a, float) else a == b
loaded = marshal.loads(data[4:4 + size])
fresh = compile(data[4 + size:].decode(), "/x/m.py", "exec")
print(same(loaded, fresh))
)py";
  std::string input;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    input += static_cast<char>((canonical.size() >> shift) & 255U);
  }
  const Captured run = python(program, "9", input + canonical + std::string(kSource));
  EXPECT_EQ(run.out, "True\n") << run.err;
}

// The interpreter here may be older than 3.14, which is the first to write slices.
TEST(CanonicalMarshal, SlicesAreConstantsToo) {
  const std::string slice = std::string(":i\1\0\0\0", 6) + "NN";
  const std::string pair = ")\2" + slice + slice;
  const std::string shared = ")\2\xBA" + slice.substr(1) + std::string("r\0\0\0\0", 5);
  EXPECT_EQ(canonical_marshal(as_bytes(slice), 14), slice);
  EXPECT_EQ(canonical_marshal(as_bytes(pair), 14), shared);
  EXPECT_EQ(canonical_marshal(as_bytes(shared), 14), shared);
}

TEST(CanonicalMarshal, DamageIsAnErrorNotACrash) {
  const int minor = python_minor();
  const std::string good = compiled("1", "");
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{1}, good.size() / 2, good.size() - 1}) {
    EXPECT_THROW((void)canonical_marshal(as_bytes(std::string_view(good).substr(0, length)), minor),
                 Error)
        << length;
  }
  const auto code = [&](const std::string& bytes, int of_minor) {
    return code_of([&] { (void)canonical_marshal(as_bytes(bytes), of_minor); });
  };
  EXPECT_EQ(code(good + "x", minor), "bad-bytecode");
  EXPECT_EQ(code(std::string(5000, '('), minor), "bad-bytecode");
  EXPECT_EQ(code(good, 99), "bad-bytecode");
}

}  // namespace
}  // namespace mlenv
