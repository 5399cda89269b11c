#include "images/token_scopes.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace mlenv {

void TokenScopes::add(std::string_view text) {
  for (const std::string_view one : split(text, ' ')) {
    if (one.empty()) continue;
    const std::size_t colon = std::min(one.rfind(':'), one.size());
    const std::string_view resource = one.substr(0, colon);
    if (only_pull_ && !resource.starts_with("repository:")) continue;
    auto scope = std::find_if(all_.begin(), all_.end(),
                              [&](const Scope& known) { return known.resource == resource; });
    if (scope == all_.end()) scope = all_.insert(scope, {std::string(resource), {}});
    if (colon == one.size()) continue;
    for (std::string_view action : split(one.substr(colon + 1), ',')) {
      if (only_pull_) action = "pull";  // which `*` holds, too
      const auto end = scope->actions.end();
      if (std::find(scope->actions.begin(), end, action) == end) {
        scope->actions.emplace_back(action);
      }
    }
  }
}

bool TokenScopes::hold(std::string_view text) const {
  TokenScopes more = *this;
  more.add(text);
  return more.all_ == all_;
}

std::string TokenScopes::str() const {
  std::string text;
  for (const Scope& scope : all_) {
    if (!text.empty()) text += ' ';
    text += scope.resource;
    for (std::size_t i = 0; i < scope.actions.size(); ++i) {
      text += (i == 0 ? ':' : ',') + scope.actions[i];
    }
  }
  return text;
}

}  // namespace mlenv
