#include "runner/local/option_words.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/support/error_code.hpp"

namespace mlenv {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

template <class Parse>
std::string parse_refusal(Parse&& parse) {
  return code_of([&] { (void)parse(); });
}

TEST(OptionWords, SizesAreDockers) {
  EXPECT_EQ(parse_size("--x", "1048576"), kMiB);
  for (const char* text : {"512m", "512M", "512mb", "512MiB", "0.5g", "512 m", "524288k"}) {
    EXPECT_EQ(parse_size("--x", text), 512 * kMiB) << text;
  }
  EXPECT_EQ(parse_size("--x", "7b"), 7U);
  for (const char* text : {"", "m", "-1", "1x", "1mm", "1.2.3g", "0", "1e30", "nan", "9999999t"}) {
    EXPECT_EQ(parse_refusal([&] { return parse_size("--x", text); }), "usage") << text;
  }
}

TEST(OptionWords, MemoryIsEnoughToStartIn) {
  EXPECT_EQ(parse_memory("32m"), 32 * kMiB);
  EXPECT_EQ(parse_refusal([] { return parse_memory("31m"); }), "usage");
  const auto swap = [](std::string_view text, std::optional<std::uint64_t> memory = 64 * kMiB) {
    JobLimits limits;
    limits.memory_bytes = memory;
    parse_memory_swap(text, limits);
    return limits;
  };
  EXPECT_EQ(swap("96m").memory_swap_bytes, 96 * kMiB);
  EXPECT_EQ(swap("64m").memory_swap_bytes, 64 * kMiB);  // none
  EXPECT_FALSE(swap("0").memory_swap_bytes);
  EXPECT_FALSE(swap("0").unlimited_swap);
  EXPECT_TRUE(swap("-1").unlimited_swap);
  EXPECT_EQ(parse_refusal([&] { return swap("63m"); }), "usage");
  EXPECT_EQ(parse_refusal([&] { return swap("-2"); }), "usage");
  EXPECT_EQ(parse_refusal([&] { return swap("1g", std::nullopt); }), "usage");
}

TEST(OptionWords, Processors) {
  EXPECT_DOUBLE_EQ(parse_cpus("1.5"), 1.5);
  for (const char* text : {"", "0", "-1", "x", "1,5", "0.001", "inf", "nan"}) {
    EXPECT_EQ(parse_refusal([&] { return parse_cpus(text); }), "usage") << text;
  }
  EXPECT_EQ(parse_cpuset("3,0-2,8"), "0-3,8");
  EXPECT_EQ(parse_cpuset("5"), "5");
  for (const char* text : {"", "a", "1-", "-1", "2-1", "1,,2", "0-99999999"}) {
    EXPECT_EQ(parse_refusal([&] { return parse_cpuset(text); }), "usage") << text;
  }
}

TEST(OptionWords, Pids) {
  EXPECT_EQ(parse_pids("100"), 100U);
  EXPECT_FALSE(parse_pids("-1"));
  for (const char* text : {"", "0", "x", "-2"}) {
    EXPECT_EQ(parse_refusal([&] { return parse_pids(text); }), "usage") << text;
  }
}

TEST(OptionWords, Ulimits) {
  EXPECT_EQ(parse_ulimit("nofile=1024:2048"), (Ulimit{"nofile", 1024, 2048}));
  EXPECT_EQ(parse_ulimit("nofile=1024"), (Ulimit{"nofile", 1024, 1024}));
  EXPECT_EQ(parse_ulimit("memlock=unlimited"), (Ulimit{"memlock", {}, {}}));
  EXPECT_EQ(parse_ulimit("core=0:-1"), (Ulimit{"core", 0, {}}));
  for (const char* text : {"", "nofile", "nofile=", "files=1", "nofile=2:1", "nofile=-1:1",
                           "nofile=1:2:3", "NOFILE=1"}) {
    EXPECT_EQ(parse_refusal([&] { return parse_ulimit(text); }), "usage") << text;
  }
}

TEST(OptionWords, FoldersInMemory) {
  EXPECT_EQ(parse_tmpfs("/m").target, "/m");
  const MemoryFolder folder = parse_tmpfs("/m/x/:size=2g,mode=755,noexec");
  EXPECT_EQ(folder.target, "/m/x");
  EXPECT_EQ(folder.options, (std::vector<std::string>{"nosuid", "nodev", "mode=1777",
                                                      "size=2147483648", "mode=755", "noexec"}));
  EXPECT_EQ(parse_tmpfs("/m:size=50%").options.back(), "size=50%");
  for (const char* text :
       {"", "m", "/", "/dev", "/sys/", "/proc/x", "/m:", "/m:mode=9", "/m:uid=0", "/m:size=%"}) {
    const std::string code = parse_refusal([&] { return parse_tmpfs(text); });
    EXPECT_TRUE(code == "bad-mount" || code == "usage") << text << code;
  }
}

TEST(OptionWords, Mounts) {
  const auto bind = parse_mount("type=bind,src=/tmp,dst=/data,readonly");
  ASSERT_TRUE(std::holds_alternative<Mount>(bind));
  EXPECT_EQ(std::get<Mount>(bind).source, "/tmp");
  EXPECT_EQ(std::get<Mount>(bind).target, "/data");
  EXPECT_TRUE(std::get<Mount>(bind).read_only);
  const auto memory = parse_mount("type=tmpfs,target=/m,tmpfs-size=1k,readonly");
  ASSERT_TRUE(std::holds_alternative<MemoryFolder>(memory));
  EXPECT_EQ(std::get<MemoryFolder>(memory).options,
            (std::vector<std::string>{"nosuid", "nodev", "mode=1777", "size=1024", "ro"}));
  for (const char* text :
       {"", "type=volume,target=/x", "src=/tmp", "dst=/x", "src=/tmp,dst=x", "src=/none,dst=/x",
        "type=tmpfs,src=/tmp,dst=/x", "src=/tmp,dst=/x,tmpfs-size=1", "src=/tmp,dst=/proc",
        "src=/tmp,dst=/x,what"}) {
    EXPECT_EQ(parse_refusal([&] { return parse_mount(text); }), "bad-mount") << text;
  }
}

TEST(OptionWords, Ports) {
  using Ports = std::vector<PublishedPort>;
  EXPECT_EQ(parse_ports("8080:80"), (Ports{{"127.0.0.1", 8080, 80, "tcp"}}));
  EXPECT_EQ(parse_ports("0.0.0.0:53:5353/udp"), (Ports{{"0.0.0.0", 53, 5353, "udp"}}));
  EXPECT_EQ(parse_ports("7000-7001:80-81"),
            (Ports{{"127.0.0.1", 7000, 80, "tcp"}, {"127.0.0.1", 7001, 81, "tcp"}}));
  for (const char* text : {"", "80", ":80", "80:", "0:80", "80:65536", "x:80:80", "1.2.3:80:80",
                           "80:80/sctp", "1-2:3", "2-1:2-1", "::1:80:80", "a:b"}) {
    EXPECT_EQ(parse_refusal([&] { return parse_ports(text); }), "usage") << text;
  }
}

TEST(OptionWords, NamesOfHostsAndLabels) {
  EXPECT_EQ(parse_hostname("node-1.cluster"), "node-1.cluster");
  for (const std::string& text : {std::string(), std::string("-a"), std::string("a b"),
                                  std::string("a_b"), std::string(64, 'a')}) {
    EXPECT_EQ(parse_refusal([&] { return parse_hostname(text); }), "usage") << text;
  }
  EXPECT_EQ(parse_label("a=b=c"), (JobLabel{"a", "b=c"}));
  EXPECT_EQ(parse_label("a"), (JobLabel{"a", ""}));
  for (const char* text : {"", "=b"}) {
    EXPECT_EQ(parse_refusal([&] { return parse_label(text); }), "usage") << text;
  }
}

}  // namespace
}  // namespace mlenv
