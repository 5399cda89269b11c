#include "runner/local/program.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>

#include <fmt/core.h>

#include "runner/local/job.hpp"

namespace mlenv {
namespace {

using Program = ImageRoot::Program;

constexpr int kMaxLinks = 40;            // as the kernel (path_resolution(7))
constexpr std::size_t kHeadBytes = 256;  // what the kernel reads of a program (BINPRM_BUF_SIZE)

bool is_beneath(const std::string& path, const std::string& folder) {
  return path == folder ||
         (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

Program host_program(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return Program::absent;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0
             ? Program::found
             : Program::not_executable;
}

std::optional<std::string> host_head(const fs::path& path) {
  const Fd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  std::string head(kHeadBytes, '\0');
  const ssize_t count = fd ? ::read(fd.get(), head.data(), head.size()) : -1;
  if (count < 0) return std::nullopt;
  head.resize(static_cast<std::size_t>(count));
  return head;
}

/// Files as the job will see them: the image's, and over them the mounts.
class View {
 public:
  View(const Bundle& bundle, const ImageRoot& image) : bundle_(bundle), image_(image) {}

  Program program(const std::string& path) const {
    const std::optional<std::string> real = real_path(path);
    if (!real) return Program::absent;
    if (const auto host = host_path(*real)) return host_program(*host);
    return is_hidden(*real) ? Program::found : image_.program(*real);
  }

  /// The first bytes; nullopt where they cannot be read from here.
  std::optional<std::string> head(const std::string& path) const {
    const std::optional<std::string> real = real_path(path);
    if (!real) return std::nullopt;
    if (const auto host = host_path(*real)) return host_head(*host);
    return is_hidden(*real) ? std::nullopt : image_.read(*real, kHeadBytes);
  }

 private:
  /// Absolute, every link followed; nullopt when they lead in a circle.
  std::optional<std::string> real_path(const std::string& path) const {
    fs::path real = "/";
    fs::path rest = fs::path(bundle_.workdir) / path;
    for (int links = 0; links <= kMaxLinks; ++links) {
      if (rest.is_absolute()) real = "/";
      const std::optional<fs::path> linked = follow(real, rest.relative_path());
      if (!linked) return real.string();
      rest = *linked;
    }
    return std::nullopt;
  }

  /// Walks `rest` from `real` up to the first link and answers with its target and what comes
  /// after; nullopt at the end.
  std::optional<fs::path> follow(fs::path& real, const fs::path& rest) const {
    for (auto name = rest.begin(); name != rest.end(); ++name) {
      if (name->empty() || *name == ".") continue;
      if (*name == "..") {
        real = real.parent_path();
      } else if (const auto target = link((real / *name).string())) {
        fs::path linked = *target;
        while (++name != rest.end()) linked /= *name;
        return linked;
      } else {
        real /= *name;
      }
    }
    return std::nullopt;
  }

  std::optional<std::string> link(const std::string& path) const {
    const std::optional<fs::path> host = host_path(path);
    if (!host) return is_hidden(path) ? std::nullopt : image_.link(path);
    // What is mounted is never a link, even if its source on the host is.
    const Mount* const mount = mount_over(path);
    if (mount != nullptr && path == mount->target) return std::nullopt;
    std::error_code error;
    const fs::path target = fs::read_symlink(*host, error);
    return error ? std::nullopt : std::optional(target.string());
  }

  /// The mount that holds `path`; the deepest one wins.
  const Mount* mount_over(const std::string& path) const {
    const Mount* best = nullptr;
    for (const Mount& mount : bundle_.mounts) {
      if (!is_beneath(path, mount.target)) continue;
      if (best == nullptr || mount.target.size() >= best->target.size()) best = &mount;
    }
    return best;
  }

  std::optional<fs::path> host_path(const std::string& path) const {
    const Mount* mount = mount_over(path);
    if (mount == nullptr) return std::nullopt;
    const fs::path below = fs::path(path).lexically_relative(mount->target);
    return below == "." ? mount->source : mount->source / below;
  }

  /// Beneath a default mount, which is not there yet.
  bool is_hidden(const std::string& path) const {
    return std::any_of(hidden_.begin(), hidden_.end(),
                       [&](const std::string& target) { return is_beneath(path, target); });
  }

  const Bundle& bundle_;
  const ImageRoot& image_;
  std::vector<std::string> hidden_ = default_mount_targets();
};

std::string search_path(const Bundle& bundle) {
  for (const std::string& variable : bundle.env) {
    if (variable.starts_with("PATH=")) return variable.substr(5);
  }
  return kDefaultPath;
}

struct Found {
  Program program = Program::absent;
  std::string path;
};

Found search(const std::string& name, const Bundle& bundle, const View& view) {
  Found result;
  const std::string path = search_path(bundle);
  std::string_view rest = path;
  while (true) {
    const std::size_t end = rest.find(':');
    const std::string candidate = (fs::path(rest.substr(0, end)) / name).string();
    const Program program = view.program(candidate);
    if (program == Program::found) return {program, candidate};
    if (program == Program::not_executable) result = {program, candidate};
    if (end == std::string_view::npos) return result;
    rest.remove_prefix(end + 1);
  }
}

/// What execve(2) would say of the file's first bytes. A foreign binary format may have a handler
/// (binfmt_misc): only text without `#!` is refused.
std::optional<CannotRun> bad_format(const std::string& name, const std::string& path,
                                    const View& view) {
  const std::optional<std::string> head = view.head(path);
  if (!head) return std::nullopt;
  if (!head->starts_with("#!")) {
    const bool is_binary = head->find('\0') != std::string::npos;
    if (is_binary) return std::nullopt;
    return CannotRun{126, fmt::format("cannot run `{}`: it is no program, and as a script it lacks "
                                      "a first line such as `#!/bin/sh`",
                                      name)};
  }
  const std::size_t start = head->find_first_not_of(" \t", 2);
  if (start == std::string::npos) return std::nullopt;
  const std::size_t end = head->find_first_of(std::string_view(" \t\r\n\0", 5), start);
  const std::string interpreter = head->substr(start, end - start);
  if (view.program(interpreter) != Program::absent) return std::nullopt;
  return CannotRun{
      127, fmt::format("cannot run `{}`: its interpreter `{}` is not there", name, interpreter)};
}

}  // namespace

std::optional<CannotRun> cannot_run(const Bundle& bundle, const ImageRoot& image) {
  const std::string& name = bundle.argv.front();
  const View view{bundle, image};
  const bool is_path = name.find('/') != std::string::npos;
  const Found found = is_path ? Found{view.program(name), name} : search(name, bundle, view);
  switch (found.program) {
    case Program::found:
      return bad_format(name, found.path, view);
    case Program::not_executable:
      return CannotRun{126, fmt::format("cannot run `{}`: it is not an executable file", name)};
    case Program::absent:
      break;
  }
  if (is_path) return CannotRun{127, fmt::format("cannot run `{}`: no such file", name)};
  return CannotRun{127, fmt::format("cannot run `{}`: not found on the image's PATH ({})", name,
                                    search_path(bundle))};
}

}  // namespace mlenv
