#pragma once
// What a run's image had installed, in a record that is handed over: the image need not be in the
// store of the one who reads it.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "recipes/environment.hpp"

namespace mlenv {

struct RecordedVariable {
  std::string name;
  std::optional<std::string> value;  ///< nothing: masked (secrets.hpp)
  friend bool operator==(const RecordedVariable&, const RecordedVariable&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("value", self.value);
  }
};

struct RecordedPackage {
  std::string name;
  std::string version;
  std::optional<std::string> architecture;  ///< of Debian packages alone
  friend bool operator==(const RecordedPackage&, const RecordedPackage&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("version", self.version);
    visit("architecture", self.architecture);
  }
};

struct RunEnvironment {
  std::string platform;
  std::vector<RecordedPackage> wheels;
  std::vector<RecordedPackage> debs;
  std::vector<RecordedVariable> env;  ///< the image's own, by name
  friend bool operator==(const RunEnvironment&, const RunEnvironment&) = default;
  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("platform", self.platform);
    visit("wheels", self.wheels);
    visit("debs", self.debs);
    visit("env", self.env);
  }
};

/// `variables` are the image's, `NAME=VALUE`; secrets among them are masked.
RunEnvironment run_environment(const Environment& installed,
                               const std::vector<std::string>& variables);
/// The other way, as far as packages go.
Environment environment_of(const RunEnvironment& recorded);

}  // namespace mlenv
