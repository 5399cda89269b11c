#include "recipes/resolve/host_logins.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "base/error.hpp"
#include "base/netrc.hpp"
#include "base/scratch_folder.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/text.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace mlenv {
namespace {

constexpr std::string_view kPlain = "http://";

bool has_url(const std::vector<std::string>& arguments, std::string_view scheme) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const std::string& word) { return word.starts_with(scheme); });
}

void write_private(const fs::path& path, std::string_view text) {
  AtomicFile file{path, 0600};
  file.write(as_bytes(text));
  file.commit(/*durable=*/false);
}

/// Links to all in `home`, but for its netrc files; one of these with this text.
std::unique_ptr<ScratchFolder> home_like(const fs::path& home, const std::string& netrc) {
  auto made = std::make_unique<ScratchFolder>();
  for (const fs::path& entry : list_folder(home)) {
    const std::string name = entry.filename().string();
    if (name == ".netrc" || name == "_netrc") continue;
    std::error_code taken;
    fs::create_symlink(entry, made->path() / name, taken);
  }
  write_private(made->path() / ".netrc", netrc);
  return made;
}

}  // namespace

std::vector<std::string> plain_http_hosts(const std::vector<std::string>& texts) {
  std::vector<std::string> hosts;
  for (const std::string& text : texts) {
    const std::string lower = to_lower(text);
    for (std::size_t at = lower.find(kPlain); at != std::string::npos;
         at = lower.find(kPlain, at)) {
      at += kPlain.size();
      std::string_view place = std::string_view(lower).substr(at);
      place = place.substr(0, place.find_first_of("/?# \t\r\n\"'"));
      place.remove_prefix(place.rfind('@') + 1);  // 0 without one
      const std::size_t bracket = place.find(']');
      place = place.substr(0, place.find(':', bracket == place.npos ? 0 : bracket));
      if (!place.empty()) hosts.emplace_back(place);
    }
  }
  return hosts;
}

namespace {

std::optional<std::string> netrc_text(const fs::path& path) {
  try {
    return read_small_file_if_exists(path, size_limit::kNetrc);
  } catch (const Error& error) {
    if (error.code() != "permission") throw;
    return std::nullopt;  // the program cannot read it either
  }
}

}  // namespace

std::vector<std::string> own_environment() {
  std::vector<std::string> own;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    own.emplace_back(*variable);
  }
  return own;
}

void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value) {
  std::erase_if(environment, [&](const std::string& one) { return one.starts_with(name + '='); });
  if (!value.empty()) environment.push_back(name + '=' + value);
}

std::string_view variable_in(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string_view text : environment) {
    if (text.starts_with(name) && text.substr(name.size()).starts_with('=')) {
      return text.substr(name.size() + 1);
    }
  }
  return {};
}

void narrow_netrc(std::vector<std::string>& environment, const std::vector<std::string>& words,
                  const fs::path& folder) {
  std::string path{variable_in(environment, "NETRC")};
  const std::string home{variable_in(environment, "HOME")};
  if (path.empty() && !home.empty()) path = home + "/.netrc";
  if (path.empty()) return;
  const auto netrc = netrc_text(path);
  if (!netrc) return;
  std::vector<std::string> texts = words;
  for (const std::string& variable : environment) {
    if (variable.starts_with("UV_") || variable.starts_with("PIP_")) texts.push_back(variable);
  }
  const fs::path narrowed = fs::absolute(folder) / "netrc";
  write_private(narrowed, narrowed_netrc(*netrc, plain_http_hosts(texts)));
  set_variable(environment, "NETRC", narrowed.string());
}

std::vector<std::string> git_login_options(const std::vector<std::string>& arguments) {
  if (has_url(arguments, kPlain)) return {"-c", "credential.helper="};
  // Else a redirect could lead there. The person's own `insteadOf` may (git-config(1), "user").
  if (has_url(arguments, "https://")) return {"-c", "protocol.http.allow=user"};
  return {};
}

void narrow_git_home(std::vector<std::string>& environment,
                     const std::vector<std::string>& arguments) {
  const bool plain = has_url(arguments, kPlain);
  const std::string home{variable_in(environment, "HOME")};
  if (home.empty() || (!plain && !has_url(arguments, "https://"))) return;
  const auto netrc = netrc_text(fs::path(home) / ".netrc");
  if (!netrc || (!plain && !has_default(*netrc))) return;
  // One for each, as long as this process lives: git starts helpers that may outlive it.
  static std::mutex mutex;
  static std::map<bool, std::unique_ptr<ScratchFolder>> made;
  const std::lock_guard lock{mutex};
  std::unique_ptr<ScratchFolder>& folder = made[plain];
  if (!folder) folder = home_like(home, plain ? std::string{} : narrowed_netrc(*netrc, {}));
  set_variable(environment, "HOME", folder->path().string());
}

}  // namespace mlenv
