#include "images/inspect/fatbin.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/fatbin.hpp"

namespace mlenv {
namespace {

using test::fatbin;
using test::little_endian;

std::string code_names(const std::set<DeviceCode>& codes) {
  std::string text;
  for (const DeviceCode& code : codes) text += code.name() + ' ';
  return text;
}

std::string scanned(std::string_view bytes, std::size_t chunk) {
  FatbinScanner scanner;
  for (std::size_t at = 0; at < bytes.size(); at += chunk) {
    scanner.write(as_bytes(bytes.substr(at, chunk)));
  }
  return code_names(scanner.found());
}

TEST(FatbinScanner, FindsEveryEntryHoweverTheBytesArrive) {
  const std::string bytes =
      "\x7f"
      "ELF of something\x50\xed\x55" +
      fatbin({{2, 75}, {2, 90, 0x100011}, {1, 120, 0x8011, 300}}) + std::string(5000, '\0') +
      fatbin({{2, 100, 0x1008011, 70000}}) + "end";
  for (const std::size_t chunk :
       {std::size_t{1}, std::size_t{7}, std::size_t{4096}, bytes.size()}) {
    EXPECT_EQ(scanned(bytes, chunk), "sm_75 sm_90a sm_100 compute_120 ") << chunk;
  }
}

TEST(FatbinScanner, TellsVariantsApart) {
  // As nvcc 13.5 writes sm_90a, sm_100f, sm_100, compute_103a and compute_110f.
  EXPECT_EQ(scanned(fatbin({{2, 90, 0x100011},
                            {2, 100, 0x1200011},
                            {2, 103, 0x1008011},
                            {1, 103, 0x108011},
                            {1, 110, 0x208011}}),
                    64),
            "sm_90a sm_100f sm_103 compute_103a compute_110f ");
}

TEST(FatbinScanner, SaysWhereTheyAre) {
  const std::string gap(100000, 'x');
  const std::string bytes = gap + fatbin({{2, 75}}) + fatbin({{2, 75}}) + gap + fatbin({{1, 90}});
  FatbinScanner scanner;
  scanner.write(as_bytes(bytes));
  ASSERT_EQ(scanner.runs().size(), 2);
  EXPECT_EQ(scanner.runs()[0].begin, gap.size());
  EXPECT_EQ(scanner.runs()[1].begin, bytes.size() - fatbin({{1, 90}}).size());
  EXPECT_EQ(scanner.runs()[1].end, bytes.size());
  EXPECT_EQ(code_names(scanner.runs()[0].code), "sm_75 ");
}

TEST(FatbinScanner, CodeCanBePassedOver) {
  const std::string bytes = fatbin({{2, 75, 0x11, 5000}, {2, 80, 0x11, 5000}});
  FatbinScanner scanner;
  std::size_t seen = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto skip = std::min<std::uint64_t>(scanner.unneeded(), bytes.size() - at);
    scanner.pass_over(skip);
    at += skip;
    const std::string_view part = std::string_view(bytes).substr(at, 100);
    scanner.write(as_bytes(part));
    at += part.size();
    seen += part.size();
  }
  EXPECT_EQ(code_names(scanner.found()), "sm_75 sm_80 ");
  EXPECT_LT(seen, 1000);
}

TEST(FatbinScanner, PassesOverWhatOnlyLooksLikeOne) {
  const std::string magic = little_endian(0xBA55ED50, 4);
  EXPECT_EQ(scanned(magic, 1), "");
  EXPECT_EQ(scanned(magic + magic + fatbin({{2, 80}}), 3), "sm_80 ");
  // An entry that says it is larger than its container, and one of a kind that is no code.
  std::string wrong = fatbin({{2, 86}});
  wrong[16 + 8] = '\x7f';
  EXPECT_EQ(scanned(wrong + fatbin({{2, 80}}), 64), "sm_80 ");
  EXPECT_EQ(scanned(fatbin({{16, 90}, {2, 80}}), 64), "sm_80 ");
  const std::string whole = fatbin({{2, 75}, {2, 80}});
  EXPECT_EQ(scanned(whole.substr(0, whole.size() - 80), 64), "sm_75 ");
}

}  // namespace
}  // namespace mlenv
