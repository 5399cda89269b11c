// Debian packages that somebody asked for: roots of what is installed.
#include <map>
#include <set>

#include "base/error.hpp"
#include "recipes/init/container_contents.hpp"
#include "recipes/resolve/debian_control.hpp"
#include "recipes/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kMostInstalled = 20'000;

struct InstalledPackage {
  bool wanted = false;  ///< somebody asked for it
  bool basic = false;   ///< of the base system
  std::vector<std::string> needs;
};
using InstalledPackages = std::map<std::string, InstalledPackage>;

/// First names of the alternatives of a relation field: `a (>= 1) | b, c:any`.
void add_needs(std::string_view field, std::vector<std::string>& needs) {
  for (const std::string_view relation : split(field, ',')) {
    for (const std::string_view one : split(relation, '|')) {
      const std::string_view name = trim(one);
      needs.emplace_back(name.substr(0, name.find_first_of(" (:\t\n[")));
    }
  }
}

bool is_of_base_system(const ControlStanza& stanza) {
  const std::string_view priority = stanza.field("Priority");
  return priority == "required" || priority == "important" || priority == "standard" ||
         stanza.field("Essential") == "yes";
}

std::set<std::string, std::less<>> automatic_packages(std::string_view extended_states) {
  std::set<std::string, std::less<>> names;
  each_stanza(extended_states, [&](const ControlStanza& stanza) {
    if (stanza.field("Auto-Installed") == "1") names.emplace(stanza.field("Package"));
  });
  return names;
}

InstalledPackages installed_packages(std::string_view status, std::string_view extended_states) {
  const auto automatic = automatic_packages(extended_states);
  InstalledPackages all;
  each_stanza(status, [&](const ControlStanza& stanza) {
    if (!stanza.field("Status").ends_with(" installed")) return;
    if (all.size() == kMostInstalled) {
      throw failure("too-large", "dpkg's status names more than {} packages", kMostInstalled);
    }
    const std::string name{stanza.field("Package")};
    InstalledPackage& one = all[name];
    one.basic = is_of_base_system(stanza);
    one.wanted = !one.basic && !automatic.contains(name);
    for (const std::string_view field : {"Depends", "Pre-Depends", "Recommends"}) {
      add_needs(stanza.field(field), one.needs);
    }
  });
  return all;
}

/// All that `name` brings along, itself not among them unless it needs itself.
std::set<std::string> brought_by(const std::string& name, const InstalledPackages& all) {
  std::set<std::string> seen;
  std::vector<const InstalledPackage*> next{&all.at(name)};
  while (!next.empty()) {
    const InstalledPackage& one = *next.back();
    next.pop_back();
    for (const std::string& need : one.needs) {
      const auto found = all.find(need);
      if (found != all.end() && seen.insert(need).second) next.push_back(&found->second);
    }
  }
  return seen;
}

}  // namespace

std::vector<std::string> asked_for_packages(std::string_view status,
                                            std::string_view extended_states) {
  const InstalledPackages all = installed_packages(status, extended_states);
  std::set<std::string> roots;
  for (const auto& [name, one] : all) {
    if (one.wanted) roots.insert(name);
  }
  for (const auto& [name, one] : all) {
    if (!one.basic && !roots.contains(name)) continue;
    for (const std::string& other : brought_by(name, all)) {
      if (other != name) roots.erase(other);  // of two that need each other the first one stays
    }
  }
  return {roots.begin(), roots.end()};
}

}  // namespace mlenv
