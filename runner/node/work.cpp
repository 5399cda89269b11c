#include "runner/node/work.hpp"

#include <sys/prctl.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "base/progress.hpp"
#include "images/unpack.hpp"
#include "runner/facts/probe.hpp"
#include "runner/local/life.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/stage.hpp"
#include "runner/node/code_tree.hpp"
#include "runner/node/data_work.hpp"
#include "runner/node/link_tester.hpp"
#include "runner/node/storage_tester.hpp"

namespace mlenv::job {
namespace {

constexpr std::string_view kNodeWorkArgument = "__node-work";
constexpr std::size_t kMostWorkAnswer = std::size_t{16} << 20;

std::string unpack_here(const fs::path& folder, const std::string& digest,
                        const std::vector<std::string>& names) {
  Store store{folder};
  // Nodes that share a store (NFS, one machine) unpack once.
  const FileLock lock = FileLock::wait(folder / "unpack.lock", FileLock::Mode::exclusive);
  const Image image = store.image(Digest::parse(digest));
  store.put_image(image);
  QuietProgress progress;
  (void)unpack_image(store, image, progress);
  for (const std::string& name : names) store.tag(Reference::parse(name), image.digest());
  return Digest::of(image.manifest).str();
}

std::string do_work(const std::vector<std::string>& words) {
  const std::string& what = words.at(0);
  if (what == "links") {
    serve_link_tests();
    return "";
  }
  if (what == "storage") {
    serve_storage_tests();
    return "";
  }
  if (what == "data") return data_work(words);
  const fs::path& store = words.at(1);
  if (what == "image") return unpack_here(store, words.at(2), {words.begin() + 3, words.end()});
  if (what == "code") return unpack_code(Store{store}, Digest::parse(words.at(2)), words.at(3));
  if (what == "facts") return render_facts(probe_facts(host_sources(store, words.at(2))));
  throw Error{Kind::internal, "internal", "no such work: " + what};
}

/// Of this process, with TMPDIR so.
std::vector<std::string> variables_with(const fs::path& temporary) {
  std::vector<std::string> all;
  for (const auto& [name, value] : caller_variables()) {
    if (name != "TMPDIR") all.push_back(name + "=" + value);
  }
  all.push_back("TMPDIR=" + temporary.string());
  return all;
}

}  // namespace

std::vector<std::string> work_command(const std::vector<std::string>& words) {
  std::vector<std::string> argv = {own_executable().string(), std::string(kNodeWorkArgument),
                                   std::to_string(::getpid())};
  argv.insert(argv.end(), words.begin(), words.end());
  return argv;
}

Work::Work(std::string during, const std::vector<std::string>& words, const fs::path& temporary)
    : during_(std::move(during)) {
  Pipe pipe = make_pipe();
  Command command{Purpose{"node-work"}};
  command.argv = work_command(words);
  command.stdout_fd = pipe.write_end.get();
  if (!temporary.empty()) command.env = variables_with(temporary);
  child_.emplace(command);
  answer_ = std::move(pipe.read_end);
}

bool Work::hear() {
  std::array<char, 65536> buffer{};
  ssize_t count = 0;
  while ((count = ::read(answer_.get(), buffer.data(), buffer.size())) < 0 && errno == EINTR) {
  }
  if (count <= 0) return false;
  bytes_.append(buffer.data(), static_cast<std::size_t>(count));
  if (bytes_.size() > kMostWorkAnswer) {
    bytes_.clear();
    return false;
  }
  return true;
}

std::string Work::answer() {
  const Exit exit = child_->wait().value();
  if (exit == Exit{0, false}) return std::move(bytes_);
  if (exit == Exit{1, false}) (void)parse_stage_outcome(bytes_);  // throws what it holds
  if (exit.signalled) {
    throw failure("run-failed", "the process that did it on the node was killed by {}",
                  signal_name(exit.code - kSignalBase))
        .hint("the kernel does so where there is no memory left: `dmesg` there tells");
  }
  throw failure("run-failed", "the process that did it on the node ended with status {}",
                exit.code);
}

std::optional<int> work_main(int argc, char** argv) {
  constexpr int kWords = 3;
  if (argc <= kWords || argv[1] != kNodeWorkArgument) return std::nullopt;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(::getppid()) != argv[2]) return 1;  // it was gone before
  std::string answer;
  int status = 0;
  try {
    answer = do_work({argv + kWords, argv + argc});
  } catch (const Error& error) {
    answer = render_outcome(error);
    status = 1;
  } catch (const std::exception& error) {
    answer = render_outcome(Error(Kind::internal, "internal", error.what()));
    status = 1;
  }
  try {
    write_all(STDOUT_FILENO, as_bytes(answer));
  } catch (const Error&) {
    return 2;
  }
  return status;
}

}  // namespace mlenv::job
