#pragma once
// What a registry's tokens have to be good for (distribution's token scopes). A registry asks for
// what one request needs; a token that is fetched for a HEAD alone would take the place of one that
// uploads go on with.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mlenv {

class TokenScopes {
 public:
  /// `repository:team/x:pull,push`, several with blanks between them. What cannot be read is kept
  /// as it is.
  void add(std::string_view text);
  /// From now on nothing is added but pulling from repositories.
  void only_pull() { only_pull_ = true; }
  /// Whether all of it was added before.
  bool hold(std::string_view text) const;
  /// In the order in which they came; one alone reads as it was given.
  std::string str() const;

 private:
  struct Scope {
    std::string resource;
    std::vector<std::string> actions;
    friend bool operator==(const Scope&, const Scope&) = default;
  };
  std::vector<Scope> all_;
  bool only_pull_ = false;
};

}  // namespace mlenv
