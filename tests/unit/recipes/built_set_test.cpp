#include "recipes/built_set.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace mlenv {
namespace {

Built built_for(const std::string& platform) {
  return {.platform = platform,
          .lock = Digest::of("lock of " + platform),
          .files = std::nullopt,
          .layer_format = 1,
          .image = Digest::of("image of " + platform),
          .layers = {{"debian:bookworm", Digest::of("base of " + platform)}}};
}

std::string builds_refusal(const std::string& text) {
  try {
    parse_builds(text, "r.built");
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "built-invalid");
    return error.frames().front();
  }
}

TEST(BuiltSet, OfOnePlatformIsAsItWas) {
  const Built one = built_for("linux/arm64");
  EXPECT_EQ(render_builds({{one}}), render_built(one));
  EXPECT_NE(render_built(one).find("revision = 1\nplatform = \"linux/arm64\"\n"),
            std::string::npos);
}

TEST(BuiltSet, KeepsARecordForEachPlatform) {
  BuiltSet set;
  set.put(built_for("linux/arm64"));
  set.put(built_for("linux/amd64"));
  const std::string text = render_builds(set);
  EXPECT_EQ(parse_builds(text, "r.built"), set);
  EXPECT_EQ(render_builds(parse_builds(text, "r.built")), text);
  EXPECT_NE(text.find("revision = 2\nplatform = \"linux/amd64\"\n"), std::string::npos);
  EXPECT_NE(text.find("]\n\n[others.\"linux/arm64\"]\nlayer-format = 1\n"), std::string::npos);
  Built other = built_for("linux/arm64");
  other.image = Digest::of("another");
  set.put(other);
  ASSERT_EQ(set.builds.size(), 2U);
  EXPECT_EQ(set.find("linux/arm64")->image, Digest::of("another"));
  EXPECT_EQ(*set.find("linux/amd64"), built_for("linux/amd64"));
  EXPECT_EQ(set.find("linux/mips"), nullptr);
}

TEST(BuiltSet, AnIndexIsOfTheseImagesAlone) {
  BuiltSet set;
  set.put(built_for("linux/amd64"));
  const std::string without = render_builds(set);
  set.index = Digest::of("index");
  const std::string text = render_builds(set);
  EXPECT_NE(text.find("revision = 3\nindex = \"" + set.index->hex() + "\"\nplatform = "),
            std::string::npos)
      << text;
  EXPECT_EQ(parse_builds(text, "r.built"), set);
  set.put(built_for("linux/amd64"));
  EXPECT_EQ(render_builds(set), without);
}

std::string builds_with(std::string text, std::string_view from, std::string_view to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(BuiltSet, ReadsAnIndexOfRevision2) {
  BuiltSet set{{built_for("linux/amd64"), built_for("linux/arm64")}};
  EXPECT_NE(render_builds(set).find("\nrevision = 2\n"), std::string::npos);
  set.index = Digest::of("index");
  EXPECT_EQ(
      parse_builds(builds_with(render_builds(set), "revision = 3", "revision = 2"), "r.built"),
      set);
}

TEST(BuiltSet, OfANewerRevisionIsKnownToHoldMore) {
  BuiltSet set{{built_for("linux/amd64"), built_for("linux/arm64")}};
  const std::string text = render_builds(set);
  const std::string part = text.substr(text.find("[others"));
  const std::string elsewhere = builds_with(part, "linux/arm64", "linux/riscv64");
  EXPECT_EQ(builds_refusal(builds_with(text, "revision = 2", "revision = 2\nnews = 1")),
            "r.built:4:8: unknown key \"news\"\n    news = 1\n           ^");
  const std::string newer = builds_with(text, "revision = 2", "revision = 9\nnews = 1");
  set.newer = true;
  EXPECT_EQ(parse_builds(newer + "\n" + elsewhere, "r.built"), set);
}

TEST(BuiltSet, RefusesWhatIsNoRecord) {
  const std::string text = render_builds({{built_for("linux/amd64"), built_for("linux/arm64")}});
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    return builds_refusal(changed.replace(text.find(from), from.size(), to));
  };
  EXPECT_NE(with("\"linux/arm64\"]", "\"linux/amd64\"]").find("does not come after"),
            std::string::npos);
  EXPECT_NE(with("\"linux/arm64\"]", "\"linux/mips\"]").find("or is none"), std::string::npos);
  EXPECT_NE(with("[others.\"linux/arm64\"]\nlayer-format = 1", "[others.\"linux/arm64\"]")
                .find("layer-format"),
            std::string::npos);
}

TEST(BuiltSet, FactsOfTheImageStandAFactALine) {
  ImageFacts facts;
  facts.kind = "image";
  facts.digest = "sha256:1";
  facts.architecture = "amd64";
  facts.user = {"it's\x7f \\u0027", "its configuration"};
  Built built = built_for("linux/amd64");
  built.facts = facts_for_record(facts);
  const std::string text = render_built(built);
  EXPECT_NE(text.find("revision = 4\n"), std::string::npos);
  EXPECT_NE(text.find("]\nfacts = '''\n{\n\"architecture\": \"amd64\",\n"), std::string::npos);
  EXPECT_EQ(text.find('\x7f'), std::string::npos);
  const Built read = parse_built(text, "r.built");
  EXPECT_EQ(read, built);
  // What a trial of imports found is this machine's, and no record has it.
  facts.failed_imports = recorded_facts(read)->failed_imports;
  EXPECT_FALSE(facts.failed_imports);
  EXPECT_EQ(recorded_facts(read), facts);
  EXPECT_EQ(recorded_facts(built_for("linux/amd64")), std::nullopt);
  std::string windows;
  for (const char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  EXPECT_EQ(parse_built(windows, "r.built"), built);
}

TEST(BuiltSet, FactsOfEachPlatform) {
  BuiltSet set;
  set.put(built_for("linux/amd64"));
  Built other = built_for("linux/arm64");
  other.facts = facts_for_record({});
  set.put(other);
  const std::string text = render_builds(set);
  EXPECT_NE(text.find("revision = 4\n"), std::string::npos);
  EXPECT_EQ(parse_builds(text, "r.built"), set);
}

TEST(BuiltSet, FactsThatAreNoneAreAMistakeAndNewerOnesUnknown) {
  Built built = built_for("linux/amd64");
  built.facts = "{ no JSON";
  EXPECT_NE(builds_refusal(render_built(built)).find("`facts` are no JSON"), std::string::npos);
  built.facts = R"({"schema": "mlenv.image-facts/2"})";
  EXPECT_EQ(recorded_facts(parse_built(render_built(built), "r.built")), std::nullopt);
}

}  // namespace
}  // namespace mlenv
