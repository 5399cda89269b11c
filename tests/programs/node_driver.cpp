// A job's controller of one rank, for tests of agents in surroundings of their own:
//   node_driver STORE IMAGE AGENT… -- SCRIPT
// starts the command AGENT…, brings it the image (a digest) out of STORE, has it run SCRIPT by the
// image's /bin/sh, and writes what that wrote. What the node said of itself is on standard error.
// Ends with the rank's status; with 125 where there was none, and says why.
#include <unistd.h>
#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "images/store.hpp"
#include "tests/support/node_harness.hpp"

namespace mlenv {
namespace {

using test::Heard;
using test::TestNode;

constexpr int kNoRank = 125;

void say(int fd, const std::string& text) { (void)write_quietly(fd, text); }

int complain(const Heard& heard) {
  for (const std::string& one : heard.failed) say(STDERR_FILENO, one + "\n");
  if (heard.lost) say(STDERR_FILENO, "lost: " + *heard.lost + "\n");
  return kNoRank;
}

void show(const job::NodeHello& hello) {
  std::string text =
      fmt::format("host={}\nruntime={}\nversion={}\n", hello.host, hello.runtime, hello.version);
  for (const auto& one : hello.interfaces) {
    text += fmt::format("interface={} {}\n", one.name, one.address);
  }
  say(STDERR_FILENO, text);
}

job::RankStart rank_of(const Image& image, const std::string& script) {
  job::RankStart start;
  start.record.image = {"test", image.digest().str(), std::nullopt};
  start.record.argv = {"/bin/sh", "-c", script};
  start.run.config = image.settings;
  start.run.argv = start.record.argv;
  return start;
}

int drive(const std::vector<std::string>& words) {
  constexpr std::size_t kFirstOfAgent = 2;
  const auto end = std::find(words.begin(), words.end(), "--");
  const bool whole = words.size() > kFirstOfAgent && words.end() - end == 2;
  if (!whole) throw usage_error("usage", "node_driver STORE IMAGE AGENT… -- SCRIPT");
  Store store{words[0]};
  const Image image = store.image(Digest::parse(words[1]));
  TestNode node{"", {}, {words.begin() + kFirstOfAgent, end}};
  const Heard& heard = node.heard();
  const auto trouble = [&] { return !heard.failed.empty() || heard.lost; };
  node.link().meet("job", 1);
  node.link().send_image(store, image.digest().str());
  node.link().ask_facts();
  (void)node.until([&] { return (!heard.image.empty() && heard.facts) || trouble(); });
  if (heard.hello) show(*heard.hello);
  if (trouble()) return complain(heard);
  say(STDERR_FILENO, "facts=" + render_facts(*heard.facts) + "\n");
  node.link().start(rank_of(image, end[1]));
  (void)node.until([&] { return heard.ended.contains(0) || trouble(); }, std::chrono::hours{1});
  if (heard.output.contains(0)) say(STDOUT_FILENO, heard.output.at(0));
  if (!heard.ended.contains(0)) return complain(heard);
  const job::RankEnd& ended = heard.ended.at(0);
  if (ended.failure) say(STDERR_FILENO, ended.failure->message + "\n");
  node.link().bye();
  (void)node.until([&] { return heard.lost.has_value(); });
  (void)node.end();
  return static_cast<int>(ended.exit_code);
}

}  // namespace
}  // namespace mlenv

int main(int argc, char** argv) {
  try {
    return mlenv::drive({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    mlenv::say(STDERR_FILENO, std::string(error.what()) + "\n");
    return mlenv::kNoRank;
  }
}
