// Where a node's store is when nobody says so.
#include <unistd.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "runner/local/machine.hpp"
#include "runner/node/agent.hpp"

namespace mlenv::job {
namespace {

/// passwd(5): `name:password:uid:gid:comment:home:shell`; empty: it does not say.
std::string listed_home() {
  constexpr std::size_t kUid = 2;
  constexpr std::size_t kHome = 5;
  const std::string text = read_file_if_exists("/etc/passwd").value_or("");
  const std::string uid = std::to_string(::getuid());
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    std::vector<std::string_view> parts;
    while (true) {
      const std::size_t end = line.find(':');
      parts.push_back(line.substr(0, end));
      if (end == std::string_view::npos) break;
      line.remove_prefix(end + 1);
    }
    if (parts.size() > kHome && parts[kUid] == uid) return std::string(parts[kHome]);
  }
  return {};
}

}  // namespace

fs::path default_node_store() {
  const std::map<std::string, std::string> variables = caller_variables();
  const auto value = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  if (const std::string store = value("MLENV_STORE"); !store.empty()) return fs::absolute(store);
  if (const std::string data = value("XDG_DATA_HOME"); !data.empty()) {
    return fs::absolute(data) / "mlenv";
  }
  std::string home = value("HOME");
  if (home.empty()) home = listed_home();
  if (!home.empty()) return fs::path(home) / ".local/share/mlenv";
  throw usage_error("bad-setting", "there is no home folder for user {}", ::getuid())
      .hint("set MLENV_STORE and XDG_CACHE_HOME");
}

}  // namespace mlenv::job
