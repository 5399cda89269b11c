#include "builder/record.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

TEST(Record, ReadsQuotedFieldsAndWritesThemSorted) {
  const Record record =
      parse_record("b.py,sha256=xyz,3\r\n\"a,\"\"q\"\".py\",sha256=abc,4\nd/RECORD,,\n", "x.whl");
  ASSERT_EQ(record.size(), 3U);
  EXPECT_EQ(record.at("a,\"q\".py").size, "4");
  EXPECT_EQ(render_record(record),
            "\"a,\"\"q\"\".py\",sha256=abc,4\nb.py,sha256=xyz,3\nd/RECORD,,\n");
}

TEST(Record, HashIsUrlSafeBase64WithoutPadding) {
  // printf '' | sha256sum | xxd -r -p | base64 | tr '+/' '-_' | tr -d =
  EXPECT_EQ(record_entry("").hash, "sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
  EXPECT_EQ(record_entry("").size, "0");
}

TEST(Record, RefusesMalformedLines) {
  EXPECT_THROW((void)parse_record("a,b\n", "x.whl"), Error);
  EXPECT_THROW((void)parse_record("\"a,b,c\n", "x.whl"), Error);
}

}  // namespace
}  // namespace mlenv
