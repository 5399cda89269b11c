#include "base/netrc.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

struct NetrcEntry {
  std::string host;  ///< empty: `default`
  std::string user;
  std::string password;
};

/// Words with their quotes taken off (`"a \"b\""`), comments and macros passed over.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  std::optional<std::string> next() {
    while (true) {
      rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlank), rest_.size()));
      if (rest_.empty()) return std::nullopt;
      if (rest_.front() != '#') break;
      rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
    }
    return rest_.front() == '"' ? quoted() : plain();
  }
  /// A value may begin with `#`.
  std::optional<std::string> value() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlank), rest_.size()));
    if (rest_.empty()) return std::nullopt;
    return rest_.front() == '"' ? quoted() : plain();
  }
  /// To the empty line that ends a macro.
  void skip_macro() {
    const std::size_t end = rest_.find("\n\n");
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 2);
  }

 private:
  std::string plain() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(kBlank));
    rest_.remove_prefix(word.size());
    return std::string(word);
  }
  std::string quoted() {
    std::string text;
    rest_.remove_prefix(1);
    while (!rest_.empty() && rest_.front() != '"') {
      if (rest_.front() == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      text += rest_.front();
      rest_.remove_prefix(1);
    }
    if (!rest_.empty()) rest_.remove_prefix(1);
    return text;
  }

  std::string_view rest_;
};

std::vector<NetrcEntry> entries_of(std::string_view netrc) {
  std::vector<NetrcEntry> entries;
  Words words{netrc};
  while (const std::optional<std::string> word = words.next()) {
    if (*word == "machine") {
      entries.push_back({words.value().value_or(""), {}, {}});
    } else if (*word == "default") {
      entries.push_back({});
    } else if (*word == "macdef") {
      words.skip_macro();
    } else if (*word == "login" || *word == "password" || *word == "account") {
      const std::string value = words.value().value_or("");
      if (entries.empty() || *word == "account") continue;
      (*word == "login" ? entries.back().user : entries.back().password) = value;
    }
  }
  return entries;
}

std::vector<NetrcEntry> entries_with_host(std::string_view netrc) {
  std::vector<NetrcEntry> entries = entries_of(netrc);
  std::erase_if(entries, [](const NetrcEntry& one) { return one.host.empty(); });
  return entries;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// Not all readers understand quotes.
std::string word_of(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_of(" \t\r\n\"\\#") == std::string::npos;
  return plain ? text : in_quotes(text);
}

}  // namespace

std::optional<NetrcLogin> find_netrc_login(std::string_view netrc, const http::Url& to) {
  if (to.scheme != "https") return std::nullopt;
  const std::vector<NetrcEntry> entries = entries_with_host(netrc);
  const std::string with_port = to.host + ":" + to.port;
  for (const std::string& name : {with_port, to.host}) {
    for (const NetrcEntry& one : entries) {
      if (to_lower(one.host) != to_lower(name)) continue;
      const std::string port = name == with_port ? to.port : std::string{};
      return NetrcLogin{{"https", to.host, port}, one.user, one.password};
    }
  }
  return std::nullopt;
}

std::string narrowed_netrc(std::string_view netrc, const std::vector<std::string>& hosts) {
  std::string text;
  for (const NetrcEntry& one : entries_with_host(netrc)) {
    const auto is_it = [&](const std::string& host) {
      return to_lower(host) == to_lower(one.host);
    };
    if (std::any_of(hosts.begin(), hosts.end(), is_it)) continue;
    text += fmt::format("machine {} login {} password {}\n", word_of(one.host), word_of(one.user),
                        word_of(one.password));
  }
  return text;
}

bool has_default(std::string_view netrc) {
  const std::vector<NetrcEntry> entries = entries_of(netrc);
  return std::any_of(entries.begin(), entries.end(),
                     [](const NetrcEntry& one) { return one.host.empty(); });
}

}  // namespace mlenv
