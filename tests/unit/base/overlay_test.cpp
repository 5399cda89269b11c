#include "base/overlay.hpp"

#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/local/namespaces.hpp"

namespace mlenv {
namespace {

/// Runs `work` in a process and a mount namespace of its own; its Error's code, or what it returns.
/// (A test runner has one thread at this point, as unshare needs.)
std::string in_namespace(const std::function<std::string(Identity)>& work) {
  Pipe pipe = make_pipe();
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::string answer;
    try {
      answer = work(enter_namespaces());
    } catch (const Error& error) {
      answer = error.code() + ": " + error.what();
    }
    write_all(pipe.write_end.get(), as_bytes(answer));
    ::_exit(0);
  }
  pipe.write_end.reset();
  FdSource source{pipe.read_end.get()};
  std::string answer = read_all(source, 1U << 20U);
  EXPECT_EQ(::waitpid(pid, nullptr, 0), pid);
  return answer;
}

class OverlayTest : public testing::TestWithParam<OverlayMethod> {
 protected:
  OverlayTest() : folder_(temporary_root()) {}
  /// `count` trees, each with a file of its own and one that all have; the paths are `padding`
  /// longer.
  Overlay overlay(int count, std::size_t padding = 0) {
    Overlay result;
    result.folder = folder_.path() / "scratch";
    result.method = GetParam();
    make_folders(result.folder);
    fs::path base = folder_.path();
    while (padding > 0) {
      const std::size_t part = std::min<std::size_t>(padding, 100);
      base /= std::string(part, 'x');
      padding -= part;
    }
    for (int i = 0; i < count; ++i) {
      const fs::path tree = base / ("tree,with:odd\\name-" + std::to_string(i));
      make_folders(tree);
      write_file(tree / std::to_string(i), "", false);
      write_file(tree / "all", std::to_string(i), false);
      result.lowers.push_back(tree);
    }
    return result;
  }
  /// Number of files and the content of `all`, as `61 60`.
  static std::string look(const Overlay& overlay) {
    return in_namespace([&](Identity identity) {
      Overlay mine = overlay;
      mine.user_xattr = identity != Identity::root;
      const fs::path root = mount_overlay(mine);
      write_file(root / "new", "x", false);
      const auto files = std::distance(fs::directory_iterator(root), fs::directory_iterator());
      return std::to_string(files) + " " + read_file(root / "all");
    });
  }
  TemporaryFolder folder_;
};

TEST_P(OverlayTest, StacksTheLastOnTop) {
  const std::string seen = look(overlay(3));
  if (seen.starts_with("no-namespace")) GTEST_SKIP() << seen;
  EXPECT_EQ(seen, "5 2");
  EXPECT_TRUE(fs::exists(folder_.path() / "scratch/upper/new"));
  EXPECT_TRUE(fs::is_empty(folder_.path() / "scratch/root"));  // the mount is gone
}

TEST_P(OverlayTest, OfEqualTreesTheTopmostCounts) {
  Overlay twice = overlay(2);
  twice.lowers.push_back(twice.lowers[0]);
  const std::string seen = look(twice);
  if (seen.starts_with("no-namespace")) GTEST_SKIP() << seen;
  EXPECT_EQ(seen, "4 0");
}

TEST_P(OverlayTest, ManyTreesWithLongNames) {
  const std::string seen = look(overlay(130, 300));
  if (seen.starts_with("no-namespace")) GTEST_SKIP() << seen;
  EXPECT_EQ(seen, "132 129");
}

TEST_P(OverlayTest, SaysWhatIsWrong) {
  Overlay absent = overlay(1);
  absent.lowers[0] /= "absent";
  const std::string seen = look(absent);
  if (seen.starts_with("no-namespace")) GTEST_SKIP() << seen;
  EXPECT_TRUE(seen.starts_with("no-overlay: ")) << seen;
  Overlay many = overlay(1);
  for (std::size_t i = 0; i < kMaxLowers; ++i) {
    many.lowers.push_back(many.lowers[0] / std::to_string(i));
  }
  EXPECT_TRUE(look(many).starts_with("no-overlay: ")) << look(many);
}

INSTANTIATE_TEST_SUITE_P(Methods, OverlayTest,
                         testing::Values(OverlayMethod::automatic, OverlayMethod::append,
                                         OverlayMethod::short_names));

}  // namespace
}  // namespace mlenv
