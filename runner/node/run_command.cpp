#include "runner/node/run_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <functional>
#include <map>

#include "base/error.hpp"
#include "base/pidfd.hpp"
#include "base/process.hpp"
#include "base/progress.hpp"
#include "base/text.hpp"
#include "images/archive_input.hpp"
#include "images/platform.hpp"
#include "images/store.hpp"
#include "images/unpack.hpp"
#include "runner/job/private_blob.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/option_words.hpp"
#include "runner/local/run_names.hpp"
#include "runner/node/agent.hpp"
#include "runner/node/code_tree.hpp"
#include "runner/node/hosts.hpp"
#include "runner/node/node_gpus.hpp"
#include "runner/repeat/deterministic.hpp"

namespace mlenv::job {
namespace {

/// What follows an option.
using Taker = std::function<void(const std::string& word)>;

/// `NAME:ADDRESS`, as Docker writes it: an address may have colons of its own.
std::string hosts_line(const std::string& word) {
  const std::size_t colon = word.find(':');
  if (colon == 0 || colon == std::string::npos || colon + 1 == word.size()) {
    throw usage_error("usage", "`--add-host {}` is no NAME:ADDRESS", word);
  }
  return word.substr(colon + 1) + " " + word.substr(0, colon) + "\n";
}

std::chrono::seconds parse_silence(const std::string& word) {
  constexpr int kMost = 24 * 60 * 60;
  int value = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || rest != end || value < 1 || value > kMost) {
    throw usage_error("usage", "`--silence {}` is no number of seconds, 1 to {}", word, kMost);
  }
  return std::chrono::seconds{value};
}

int parse_descriptor(const std::string& word) {
  int value = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc{} || rest != end || value <= STDERR_FILENO || value > 1023) {
    throw usage_error("usage", "`--env-fd {}` is no descriptor beyond the standard ones", word);
  }
  return value;
}

std::uint64_t seed_of(const std::string& word) {
  std::uint64_t seed = 0;
  const char* const end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, seed);
  if (error == std::errc{} && rest == end) return seed;
  throw usage_error("usage", "`--deterministic {}` has no seed: a whole number", word);
}

std::map<std::string, Taker, std::less<>> takers_of_limits(JobOptions& options) {
  JobLimits& limits = options.limits;
  return {
      {"--memory", [&](const std::string& word) { limits.memory_bytes = parse_memory(word); }},
      {"--memory-swap", [&](const std::string& word) { parse_memory_swap(word, limits); }},
      {"--cpus", [&](const std::string& word) { limits.cpus = parse_cpus(word); }},
      {"--cpuset-cpus", [&](const std::string& word) { limits.cpuset = parse_cpuset(word); }},
      {"--pids-limit", [&](const std::string& word) { limits.pids = parse_pids(word); }},
      {"--ulimit", [&](const std::string& word) { options.ulimits.push_back(parse_ulimit(word)); }},
      {"--shm-size",
       [&](const std::string& word) { options.shm_bytes = parse_size("--shm-size", word); }},
  };
}

std::map<std::string, Taker, std::less<>> takers_of(NodeRunWords& into) {
  JobOptions& options = into.run.options;
  std::map<std::string, Taker, std::less<>> all = takers_of_limits(options);
  all.merge(std::map<std::string, Taker, std::less<>>{
      {"--tmpfs", [&](const std::string& word) { options.tmpfs.push_back(parse_tmpfs(word)); }},
      {"--user", [&](const std::string& word) { options.user = word; }},
      {"--group-add", [&](const std::string& word) { options.groups.push_back(word); }},
      {"--hostname", [&](const std::string& word) { options.hostname = parse_hostname(word); }},
      {"--network", [&](const std::string& word) { options.network = word; }},
      {"-v", [&](const std::string& word) { into.run.mounts.push_back(Mount::parse(word)); }},
      {"-e", [&](const std::string& word) { into.run.env.push_back(word); }},
      {"-w", [&](const std::string& word) { into.run.workdir = word; }},
      {"--gpus", [&](const std::string& word) { into.gpus = word; }},
      {"--store", [&](const std::string& word) { into.store = word; }},
      {"--code", [&](const std::string& word) { into.code = Digest::parse(word).str(); }},
      {"--add-host", [&](const std::string& word) { into.hosts += hosts_line(word); }},
      {"--deterministic", [&](const std::string& word) { into.seed = seed_of(word); }},
      {"--runtime", [&](const std::string& word) { into.run.runtime = word; }},
      {"--env-fd", [&](const std::string& word) { into.env_fd = parse_descriptor(word); }},
      {"--silence", [&](const std::string& word) { into.silence = parse_silence(word); }},
  });
  return all;
}

fs::path store_or_default(const fs::path& said) {
  return said.empty() ? default_node_store() : fs::absolute(said);
}

/// Nodes that share a store (NFS, one machine) take and unpack an image once.
FileLock unpack_lock(const fs::path& store) {
  return FileLock::wait(store / "unpack.lock", FileLock::Mode::exclusive);
}

/// `--store DIR`, where it comes first; taken from the words.
Store store_of(std::vector<std::string>& words) {
  fs::path said;
  if (words.size() > 1 && words.front() == "--store") {
    said = words[1];
    words.erase(words.begin(), words.begin() + 2);
  }
  return Store{store_or_default(said)};
}

/// `KIND:PATH@DIGEST`.
struct Digested {
  fs::path path;
  Digest digest;
};
std::optional<Digested> digested(const std::string& word, std::string_view kind) {
  const std::size_t at = word.rfind('@');
  if (!word.starts_with(kind) || at == std::string::npos) return std::nullopt;
  return Digested{word.substr(kind.size(), at - kind.size()), Digest::parse(word.substr(at + 1))};
}

void take_image(Store& store, const Digested& from) {
  const FileLock lock = unpack_lock(store.root());
  QuietProgress progress;
  const Image image = fetch_image(store, {Output::Format::oci, from.path, ""}, machine_platform(),
                                  from.digest, progress);
  if (image.digest() != from.digest) {
    throw failure("digest-mismatch", "the image in `{}` is not `{}`", from.path.string(),
                  from.digest.str())
        .because("found " + image.digest().str());
  }
  (void)unpack_image(store, image, progress);
}

void take_code(Store& store, const Digested& from) {
  if (store.has(from.digest)) return keep_private(store, from.digest);
  const Fd fd = open_file(from.path);
  FdSource source{fd.get()};
  Store::Staged staged = store.stage();
  make_private(staged);
  FdSink out{staged.fd()};
  VerifyingSink checked{out, from.digest, fs::file_size(from.path), from.path.string()};
  copy(source, checked);
  checked.finish();
  staged.commit(from.digest);
}

int prepare_node(std::vector<std::string> words) {
  Store store = store_of(words);
  for (const std::string& word : words) {
    if (const auto image = digested(word, "oci:")) {
      take_image(store, *image);
    } else if (const auto code = digested(word, "code:")) {
      take_code(store, *code);
    } else {
      throw usage_error("usage",
                        "`mlenv-node prepare` takes `oci:FOLDER@DIGEST` and `code:FILE@DIGEST`")
          .because(fmt::format("`{}` is neither", word));
    }
  }
  return 0;
}

int lacks(std::vector<std::string> words) {
  const Store store = store_of(words);
  std::string lines;
  for (const std::string& word : words) {
    if (!store.has(Digest::parse(word))) lines += word + "\n";
  }
  write_all(STDOUT_FILENO, as_bytes(lines));
  return 0;
}

constexpr int kMillisecondsPerSecond = 1000;

/// Returns when standard input ends, or has nothing for so many seconds (0: however long).
void await_end_of_input(int silence) {
  std::array<char, 512> buffer{};
  for (;;) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&input, 1, silence == 0 ? -1 : silence * kMillisecondsPerSecond);
    if (ready == 0) return;
    if (ready < 0 && errno == EINTR) continue;
    const ssize_t count = ready < 0 ? 0 : ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) return;
  }
}

/// `leash OWNER SECONDS SILENCE`: of a process beside its parent, whose standard input it has. When
/// that ends, or falls silent, it tells the parent to end, and kills it when it has not in that
/// time.
int hold_leash(const std::vector<std::string>& words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (words.size() != 3 || std::to_string(::getppid()) != words[0]) return 1;
  const pid_t owner = ::getppid();
  const Fd end = open_pidfd(owner);
  await_end_of_input(std::stoi(words[2]));
  ::kill(owner, SIGTERM);
  pollfd ended{end.get(), POLLIN, 0};
  (void)::poll(&ended, 1, std::stoi(words[1]) * kMillisecondsPerSecond);
  ::kill(owner, SIGKILL);
  return 0;
}

/// Our standard input is that process's from now on, and ours is empty.
Child on_leash(std::chrono::seconds grace, std::chrono::seconds silence) {
  const Fd null = open_file("/dev/null", O_RDWR);
  Command command{Purpose{"node-leash"}};
  command.argv = {own_executable().string(), "leash", std::to_string(::getpid()),
                  std::to_string(grace.count()), std::to_string(silence.count())};
  command.stdin_fd = STDIN_FILENO;
  command.stdout_fd = null.get();
  command.stderr_fd = null.get();
  Child child{command};
  ::dup2(null.get(), STDIN_FILENO);
  return child;
}

void check_sources(const LocalRun& run) {
  for (const Mount& mount : run.mounts) {
    std::error_code error;
    if (fs::exists(mount.source, error)) continue;
    throw usage_error("bad-mount", "`{}` is not there on node `{}`", mount.source.string(),
                      host_name());
  }
}

std::vector<fs::path> trees_of(const Store& store, const Image& image) {
  std::vector<fs::path> trees;
  for (const Layer& layer : image.layers) {
    const std::optional<fs::path> tree = store.find_tree(layer.diff_id);
    if (!tree) {
      throw failure("absent", "the image `{}` is not unpacked on node `{}`", image.digest().str(),
                    host_name())
          .hint("`mlenv-node prepare` does it");
    }
    trees.push_back(*tree);
  }
  return trees;
}

/// `K=V`, each with a NUL behind it, to the end.
std::vector<std::string> variables_from(int descriptor) {
  constexpr std::uint64_t kMost = std::uint64_t{16} << 20U;
  const Fd fd{descriptor};
  FdSource source{fd.get()};
  const std::string text = read_all(source, kMost);
  std::vector<std::string> found;
  for (const std::string_view one : split(text, '\0')) {
    if (!one.empty()) found.emplace_back(one);
  }
  return found;
}

int run_as_asked(const std::vector<std::string>& words) {
  NodeRunWords asked = parse_node_run(words);
  if (asked.env_fd) {
    for (std::string& one : variables_from(*asked.env_fd)) {
      asked.run.env.push_back(std::move(one));
    }
  }
  Store store{store_or_default(asked.store)};
  LocalRun& run = asked.run;
  const Image image = store.image(Digest::parse(asked.digest));
  run.config = image.settings;
  run.trees = trees_of(store, image);
  check_sources(run);
  run.devices = node_gpus(asked.gpus).edits;
  const TemporaryFolder files = store.scratch();
  const TemporaryFolder scratch = store.scratch();
  run.scratch = scratch.path();
  if (!asked.hosts.empty()) {
    const fs::path path = files.path() / "hosts";
    write_file(path,
               hosts_with_own("127.0.0.1 localhost\n::1 localhost\n" + asked.hosts,
                              read_file_if_exists("/etc/hosts").value_or("")),
               /*durable=*/false);
    fs::permissions(path, fs::perms::others_read | fs::perms::group_read, fs::perm_options::add);
    run.mounts.insert(run.mounts.begin(), Mount{path, "/etc/hosts", true});
  }
  if (!asked.code.empty()) {
    run.project = files.path() / "code";
    (void)unpack_code(store, Digest::parse(asked.code), *run.project);
  }
  if (asked.seed) make_deterministic(run, *asked.seed, caller_variables());
  store.need_only({image.digest()});  // it may go on for weeks
  std::optional<Child> leash;
  constexpr std::chrono::seconds kGrace{10};
  if (asked.while_open)
    leash.emplace(on_leash(kGrace, asked.silence.value_or(std::chrono::seconds{0})));
  return run_local(run).exit.code;
}

std::string limit_word(const std::optional<std::uint64_t>& value) {
  return value ? std::to_string(*value) : "unlimited";
}

void add_limit_options(const JobOptions& options, std::vector<std::string>& words) {
  const auto add = [&](const char* option, const auto& value) {
    if (value) words.insert(words.end(), {option, fmt::format("{}", *value)});
  };
  add("--memory", options.limits.memory_bytes);
  add("--memory-swap", options.limits.memory_swap_bytes);
  if (options.limits.unlimited_swap) words.insert(words.end(), {"--memory-swap", "-1"});
  add("--cpus", options.limits.cpus);
  add("--cpuset-cpus", options.limits.cpuset);
  add("--pids-limit", options.limits.pids);
  for (const Ulimit& one : options.ulimits) {
    words.insert(words.end(), {"--ulimit", fmt::format("{}={}:{}", one.name, limit_word(one.soft),
                                                       limit_word(one.hard))});
  }
  add("--shm-size", options.shm_bytes);
}

}  // namespace

NodeRunWords parse_node_run(const std::vector<std::string>& words) {
  NodeRunWords asked;
  const std::map<std::string, Taker, std::less<>> takers = takers_of(asked);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      asked.run.argv.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (const auto taker = takers.find(word); taker != takers.end()) {
      if (++i == words.size()) throw usage_error("usage", "`{}` needs a word", word);
      taker->second(words[i]);
    } else if (word == "--while-open") {
      asked.while_open = true;
    } else if (word == "--read-only") {
      asked.run.options.read_only = true;
    } else if (word.starts_with('-') || !asked.digest.empty()) {
      throw usage_error("usage", "`mlenv-node run` knows no `{}`", word);
    } else {
      asked.digest = word;
    }
  }
  if (asked.digest.empty()) throw usage_error("usage", "`mlenv-node run` needs an image's digest");
  if (asked.silence && !asked.while_open) {
    throw usage_error("usage", "`--silence` is of `--while-open`");
  }
  return asked;
}

std::vector<std::string> option_words(const JobOptions& options) {
  std::vector<std::string> words;
  add_limit_options(options, words);
  for (const MemoryFolder& one : options.tmpfs) {
    words.insert(words.end(), {"--tmpfs", tmpfs_word(one)});
  }
  if (options.read_only) words.emplace_back("--read-only");
  if (options.user) words.insert(words.end(), {"--user", *options.user});
  for (const std::string& group : options.groups) words.insert(words.end(), {"--group-add", group});
  if (options.hostname) words.insert(words.end(), {"--hostname", *options.hostname});
  if (options.network != "host") words.insert(words.end(), {"--network", options.network});
  return words;
}

std::optional<int> script_command(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  const std::vector<std::string> rest{words.begin() + 1, words.end()};
  if (words.front() == "run") return run_as_asked(rest);
  if (words.front() == "prepare") return prepare_node(rest);
  if (words.front() == "lacks") return lacks(rest);
  if (words.front() == "leash") return hold_leash(rest);
  return std::nullopt;
}

}  // namespace mlenv::job
