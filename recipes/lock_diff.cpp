#include <map>

#include <fmt/core.h>

#include "recipes/lock.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

using Lines = std::vector<std::string>;

std::string shown(std::string_view value) {
  return value.empty() ? std::string("none") : std::string(value);
}

void value(Lines& out, std::string_view what, std::string_view from, std::string_view to) {
  if (from != to) out.push_back(fmt::format("{}: {} → {}", what, shown(from), shown(to)));
}

void list(Lines& out, std::string_view what, const std::vector<std::string>& from,
          const std::vector<std::string>& to) {
  if (from == to) return;
  out.push_back(fmt::format("{}: {} → {}", what, shown(join(from, ", ")), shown(join(to, ", "))));
}

void request(Lines& out, const Request& from, const Request& to) {
  value(out, "base", from.base, to.base);
  value(out, "requested python", from.python, to.python);
  value(out, "framework", from.framework, to.framework);
  value(out, "requested cuda", from.cuda, to.cuda);
  list(out, "packages", from.packages, to.packages);
  list(out, "system", from.system, to.system);
}

void settings(Lines& out, const Settings& from, const Settings& to) {
  value(out, "name", from.name, to.name);
  value(out, "workdir", from.workdir, to.workdir);
  list(out, "command", from.command, to.command);
  value(out, "bytecode", from.bytecode ? "true" : "false", to.bytecode ? "true" : "false");
  if (from.sources != to.sources) {
    value(out, "package sources in the image", from.sources ? from.sources->brief() : "",
          to.sources ? to.sources->brief() : "");
  }
  for (const auto& [key, text] : from.env) {
    if (!to.env.contains(key)) out.push_back(fmt::format("- env {}", key));
  }
  for (const auto& [key, text] : to.env) {
    const auto before = from.env.find(key);
    if (before == from.env.end()) {
      out.push_back(fmt::format("+ env {}={}", key, text));
    } else {
      value(out, "env " + key, before->second, text);
    }
  }
}

template <typename Package>
std::string what_changed(const Package& from, const Package& to) {
  if (from.version != to.version) {
    return fmt::format("{} {} → {}", to.name, from.version, to.version);
  }
  if (from.digest != to.digest) {
    return fmt::format("{} {}: other bytes ({} → {})", to.name, to.version, from.digest.brief(),
                       to.digest.brief());
  }
  return fmt::format("{} {}: described differently", to.name, to.version);
}

std::string key_of(const LockedDeb& deb) { return deb.name + ':' + deb.architecture; }
std::string key_of(const LockedWheel& wheel) { return wheel.name; }

template <typename Package>
void packages(Lines& out, const std::vector<Package>& from, const std::vector<Package>& to) {
  std::map<std::string, std::pair<const Package*, const Package*>> both;
  for (const Package& one : from) both[key_of(one)].first = &one;
  for (const Package& one : to) both[key_of(one)].second = &one;
  for (const auto& [key, sides] : both) {
    const auto& [before, after] = sides;
    if (before == nullptr) {
      out.push_back(fmt::format("+ {} {}", after->name, after->version));
    } else if (after == nullptr) {
      out.push_back(fmt::format("- {} {}", before->name, before->version));
    } else if (*before != *after) {
      out.push_back(what_changed(*before, *after));
    }
  }
}

}  // namespace

std::vector<std::string> lock_differences(const Lock& from, const Lock& to) {
  Lines out;
  if (from.revision != to.revision) {
    out.push_back(fmt::format("revision: {} → {}", from.revision, to.revision));
  }
  value(out, "platform", from.platform, to.platform);
  if (from.epoch != to.epoch) {
    out.push_back(fmt::format("epoch: {} → {}", from.epoch, to.epoch));
  }
  request(out, from.request, to.request);
  settings(out, from.settings, to.settings);
  value(out, "distribution", from.distribution, to.distribution);
  value(out, "suite", from.suite, to.suite);
  value(out, "python", from.python, to.python);
  value(out, "cuda", from.cuda ? from.cuda->release : "", to.cuda ? to.cuda->release : "");
  value(out, "oldest driver", from.cuda ? from.cuda->min_driver : "",
        to.cuda ? to.cuda->min_driver : "");
  packages(out, from.debs, to.debs);
  packages(out, from.wheels, to.wheels);
  return out;
}

}  // namespace mlenv
