#include "images/registry_hosts.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/http_url.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

using Use = RegistryMirror::Use;

/// How much of `name` (`host/repository…`) the prefix covers; nullopt: it is not about it.
std::optional<std::size_t> covered(std::string_view prefix, std::string_view name) {
  if (prefix.starts_with("*.")) {
    const std::string_view place = name.substr(0, name.find('/'));
    const std::string_view host = place.substr(0, place.find(':'));  // with any port
    if (host.size() < prefix.size() || !host.ends_with(prefix.substr(1))) return std::nullopt;
    return place.size();
  }
  if (!name.starts_with(prefix)) return std::nullopt;
  if (name.size() == prefix.size()) return prefix.size();
  const char next = name[prefix.size()];
  // `example.org` says nothing of `example.org:5000`, which is another registry.
  const bool inside = prefix.find('/') != std::string_view::npos;
  const bool ends = next == '/' || (inside && (next == ':' || next == '@'));
  return ends ? std::optional(prefix.size()) : std::nullopt;
}

/// One that names the host goes before one for many.
std::pair<bool, std::size_t> rank(const RegistryRule& rule) {
  return {!rule.prefix.starts_with("*."), rule.prefix.size()};
}

const RegistryRule* find_rule(const std::vector<RegistryRule>& rules, std::string_view name) {
  const RegistryRule* best = nullptr;
  for (const RegistryRule& rule : rules) {
    if (!covered(rule.prefix, name)) continue;
    if (best == nullptr || rank(rule) >= rank(*best)) best = &rule;
  }
  return best;
}

Reference moved(const RegistryRule& rule, const std::string& location, const Reference& from) {
  const std::string name = from.str();
  const std::string text = location + name.substr(covered(rule.prefix, name).value());
  try {
    return Reference::parse(text);
  } catch (const Error& error) {
    throw usage_error("config-invalid", "`{}` sends `{}` to `{}`, which is no reference",
                      rule.said_in, name, display_url(text))  // a login may stand before `@`
        .because(error.frames().back());
  }
}

bool serves(Use use, const Reference& from) {
  return use == Use::all || (use == Use::digests) == from.digest().has_value();
}

/// What a rule says of a place holds there alone, whoever else says where that is.
void take_over(RegistryPlace& itself, const RegistryRule& rule, const Reference& from) {
  if (!rule.location.empty()) {
    itself = {moved(rule, rule.location, from), rule.insecure, rule.plain_http, false,
              rule.skip_verify};
  } else if (itself.where.str() == from.str()) {
    itself.insecure = itself.insecure || rule.insecure;
    itself.skip_verify = itself.skip_verify || rule.skip_verify;
    itself.plain_http = itself.plain_http || rule.plain_http;
  }
}

void refuse_blocked(const RegistryRule& rule, const Reference& what) {
  if (!rule.blocked) return;
  throw failure("registry-blocked", "`{}` may not be used on this machine", what.str())
      .because(fmt::format("`{}` blocks `{}`", rule.said_in, rule.prefix));
}

/// The folders of a place may name its port or, where that is the usual one, leave it out.
std::vector<std::string> folder_names(const http::Url& url) {
  if (url.port == "443") return {url.host, url.host + ":443"};
  return {url.host + ":" + url.port};
}

HostTls read_folder(const fs::path& folder) {
  HostTls tls;
  for (const fs::path& file : list_folder(folder)) {
    const std::string kind = file.extension().string();
    if (kind == ".crt") tls.authorities.push_back(file.string());
    if (kind != ".cert" && kind != ".key") continue;
    fs::path other = file;
    other.replace_extension(kind == ".cert" ? ".key" : ".cert");
    std::error_code unseen;
    if (!fs::exists(other, unseen)) {
      throw usage_error("config-invalid", "`{}` lacks `{}`", file.string(),
                        other.filename().string())
          .hint("a client's certificate is NAME.cert with NAME.key; an authority's is NAME.crt");
    }
    if (kind != ".cert" || !tls.certificate.empty()) continue;
    tls.certificate = file.string();
    tls.key = other.string();
  }
  return tls;
}

}  // namespace

std::vector<RegistryPlace> pull_places(const RegistryHosts& hosts, const Reference& from) {
  std::vector<RegistryPlace> places;
  RegistryPlace itself{from, false, false, false};
  for (const std::vector<RegistryRule>& rules : hosts.rules) {
    const RegistryRule* const rule = find_rule(rules, from.str());
    if (rule == nullptr) continue;
    refuse_blocked(*rule, from);
    for (const RegistryMirror& mirror : rule->mirrors) {
      if (!serves(mirror.use, from)) continue;
      places.push_back({moved(*rule, mirror.location, from), mirror.insecure, mirror.plain_http,
                        true, mirror.skip_verify});
    }
    take_over(itself, *rule, from);
  }
  itself.mirror = itself.where.str() != from.str();
  places.push_back(std::move(itself));
  return places;
}

RegistryPlace push_place(const RegistryHosts& hosts, const Reference& to) {
  RegistryPlace place{to, false, false, false};
  for (const std::vector<RegistryRule>& rules : hosts.rules) {
    const RegistryRule* const rule = find_rule(rules, to.str());
    if (rule == nullptr) continue;
    refuse_blocked(*rule, to);
    if (rule->location.empty()) take_over(place, *rule, to);  // else it is about another place
  }
  return place;
}

HostTls tls_of(std::span<const fs::path> folders, std::string_view url) {
  const http::Url place = http::parse_url(url);
  for (const fs::path& folder : folders) {
    for (const std::string& name : folder_names(place)) {
      std::error_code absent;
      if (fs::is_directory(folder / name, absent)) return read_folder(folder / name);
    }
  }
  return {};
}

}  // namespace mlenv
