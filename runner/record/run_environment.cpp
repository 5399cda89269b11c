#include "runner/record/run_environment.hpp"

#include "recipes/logins.hpp"
#include "runner/record/secrets.hpp"

namespace mlenv {
namespace {

std::vector<RecordedPackage> recorded_packages(const std::vector<ListedPackage>& packages) {
  std::vector<RecordedPackage> out;
  out.reserve(packages.size());
  for (const ListedPackage& one : packages) {
    out.push_back({one.name, one.version, if_given(one.architecture)});
  }
  return out;
}

std::vector<ListedPackage> listed(const std::vector<RecordedPackage>& packages) {
  std::vector<ListedPackage> out;
  out.reserve(packages.size());
  for (const RecordedPackage& one : packages) {
    ListedPackage& package = out.emplace_back();
    package.name = one.name;
    package.version = one.version;
    package.architecture = one.architecture.value_or("");
  }
  return out;
}

}  // namespace

RunEnvironment run_environment(const Environment& installed,
                               const std::vector<std::string>& variables) {
  RunEnvironment out;
  out.platform = installed.platform;
  out.wheels = recorded_packages(installed.wheels);
  out.debs = recorded_packages(installed.debs);
  std::map<std::string, std::optional<std::string>> by_name;
  for (const std::string& text : variables) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    by_name[name] =
        is_secret_name(name) ? std::nullopt : std::optional<std::string>(without_logins(value));
  }
  for (auto& [name, value] : by_name) out.env.push_back({name, std::move(value)});
  return out;
}

Environment environment_of(const RunEnvironment& recorded) {
  Environment out;
  out.platform = recorded.platform;
  out.wheels = listed(recorded.wheels);
  out.debs = listed(recorded.debs);
  return out;
}

}  // namespace mlenv
