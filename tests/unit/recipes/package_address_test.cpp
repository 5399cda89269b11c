// `NAME @ ADDRESS`: what is understood, what it is written as, and what is refused.
#include "recipes/package_address.hpp"

#include <gtest/gtest.h>

#include "recipes/requirement.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

PackageAddress read(std::string_view text) {
  const auto found = parse_package_address(text);
  const auto* address = std::get_if<PackageAddress>(&found);
  EXPECT_NE(address, nullptr) << text;
  return address == nullptr ? PackageAddress{} : *address;
}

std::string address_refusal(std::string_view text) {
  const auto found = parse_package_address(text);
  const auto* mistake = std::get_if<AddressMistake>(&found);
  return mistake == nullptr ? "nothing" : mistake->message;
}

std::string requirement(std::string_view text) {
  const auto found = parse_requirement(text);
  if (const auto* wrong = std::get_if<RequirementMistake>(&found)) {
    return std::to_string(wrong->offset) + ' ' + wrong->message;
  }
  return std::get<Requirement>(found).str();
}

TEST(PackageAddress, PathsAreCleanAndFromTheRecipe) {
  for (const auto& [text, place] : {std::pair{"./libs/x", "./libs/x"},
                                    {"libs//x/", "./libs/x"},
                                    {"file:libs/x", "./libs/x"},
                                    {"../x", "../x"},
                                    {"./a/../../x", "../x"},
                                    {".", "."},
                                    {"a/..", "."}}) {
    const PackageAddress address = read(text);
    EXPECT_EQ(address.kind, AddressKind::path);
    EXPECT_EQ(address.place, place);
    EXPECT_EQ(read(address.str()), address);
  }
  const PackageAddress inner = read("file:a-1.tar.gz#subdirectory=python/");
  EXPECT_EQ(inner.subdirectory, "python");
  EXPECT_EQ(read(inner.str()), inner);
  EXPECT_TRUE(inner.is_archive());
  EXPECT_TRUE(read("dist/a-1-py3-none-any.whl").is_wheel());
  for (const char* absolute : {"/srv/x", "~/x", "file:///srv/x", "file:/srv/x"}) {
    EXPECT_TRUE(says(address_refusal(absolute), "the path is absolute")) << absolute;
  }
  EXPECT_TRUE(says(address_refusal(" "), "is missing"));
}

TEST(PackageAddress, Repositories) {
  const PackageAddress all = read("git+https://h.example/t/x.git@feature/a#egg=x&subdirectory=./y");
  EXPECT_EQ(all.kind, AddressKind::git);
  EXPECT_EQ(all.place, "https://h.example/t/x.git");
  EXPECT_EQ(all.reference, "feature/a");
  EXPECT_EQ(all.subdirectory, "y");
  EXPECT_EQ(all.str(), "git+https://h.example/t/x.git@feature/a#subdirectory=y");
  EXPECT_EQ(read("git+ssh://git@h.example:22/x").reference, "");
  EXPECT_EQ(read("git+ssh://git@h.example/x@v1").place, "ssh://git@h.example/x");
  EXPECT_EQ(read("git+file:///srv/x").place, "file:///srv/x");
  for (const auto& [text, words] :
       {std::pair{"git+https://me:word@h.example/x", "leave the login out"},
        {"git+https://token@h.example/x", "leave the login out"},
        {"git+ssh://git:word@h.example/x", "leave the login out"},
        {"git+git@h.example:t/x", "`git+ssh://git@host/path`"},
        {"git+https://h.example", "a repository is a URL"},
        {"git+ext://h.example/x", "`ext` is not a way"},
        {"git+https://h.example/x@--upload-pack=a", "is not a branch, tag or commit"},
        {"git+https://h.example/x@a..b", "is not a branch, tag or commit"},
        {"git+https://h.example/x?a=b", "has no query"},
        {"git+https://h.example/${A}", "characters that no URL has"},
        {"git+https://h.example/x#subdirectory=../y", "is a path in the source"},
        {"git+https://h.example/x#depth=1", "`#depth=1` is not understood"},
        {"hg+https://h.example/x", "only git is supported"}}) {
    EXPECT_TRUE(says(address_refusal(text), words)) << text << ": " << address_refusal(text);
  }
}

TEST(PackageAddress, FilesOnServers) {
  const std::string hash(64, 'a');
  const PackageAddress wheel =
      read("https://h.example/d/a-1%2Bcpu-py3-none-any.whl#sha256=" + hash);
  EXPECT_EQ(wheel.kind, AddressKind::url);
  EXPECT_EQ(wheel.file(), "a-1+cpu-py3-none-any.whl");
  EXPECT_EQ(wheel.sha256, hash);
  EXPECT_EQ(read(wheel.str()), wheel);
  for (const auto& [text, words] :
       {std::pair{"https://h.example/page", "leads to no wheel"},
        {"https://me@h.example/a-1.tar.gz", "leave the login out"},
        {"https://h.example/a-1.tar.gz?token=1", "may hold a login"},
        {"https://h.example/a-1.tar.gz#sha256=12", "64 lower-case hex digits"},
        {"ftp://h.example/a-1.tar.gz", "`ftp` is not supported"}}) {
    EXPECT_TRUE(says(address_refusal(text), words)) << text << ": " << address_refusal(text);
  }
}

TEST(PackageAddress, InRequirements) {
  EXPECT_EQ(requirement("My-Lib [a, b]@ libs/x ; python_version > '3'"),
            "My-Lib[a,b] @ ./libs/x ; python_version > '3'");
  EXPECT_EQ(requirement("x@git+https://h.example/x@v1"), "x @ git+https://h.example/x@v1");
  EXPECT_EQ(requirement("./dist/a_b-1-py3-none-any.whl"), "a_b @ ./dist/a_b-1-py3-none-any.whl");
  EXPECT_EQ(requirement("git+https://h.example/x#egg=y"), "y @ git+https://h.example/x");
  EXPECT_EQ(requirement("./x"), "0 say which package that is: `NAME @ ./x`");
  EXPECT_EQ(requirement("git+https://h.example/x#egg=a b"),
            "0 say which package that is: `NAME @ git+https://h.example/x`");
  EXPECT_TRUE(says(requirement("x @ /srv/x"), "4 the path is absolute"));
  EXPECT_TRUE(says(requirement("x>1 @ ./x"), "4 "));
  EXPECT_TRUE(says(requirement("x @ ./x ; os_name = 'nt'"), "18 "));
  EXPECT_TRUE(says(requirement("-e ./x"), "options are not supported here"));
}

}  // namespace
}  // namespace mlenv
