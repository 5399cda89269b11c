#include "builder/build_settings.hpp"

#include <nlohmann/json.hpp>

#include "base/json.hpp"

namespace mlenv {
namespace {

/// What is said of `name` goes before what is said of all.
template <class Values>
Values values_for(const BuildSteering::ByPackage<Values>& all, const std::string& name) {
  const auto own = all.by_name.find(name);
  Values values = own == all.by_name.end() ? Values{} : own->second;
  values.insert(all.all.begin(), all.all.end());
  return values;
}

}  // namespace

BuildSettings build_settings(const BuildSteering& steering, const std::string& name) {
  BuildSettings settings;
  settings.constraints = steering.constraints;
  const auto own = steering.requirements.find(name);
  if (own != steering.requirements.end()) settings.requirements = own->second;
  settings.env = values_for(steering.env, name);
  settings.config_settings = values_for(steering.config_settings, name);
  settings.network = steering.network;
  return settings;
}

std::string config_settings_json(const BuildSettings& settings) {
  if (settings.config_settings.empty()) return "null";
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [key, values] : settings.config_settings) {
    if (values.size() == 1) {
      object[key] = values.front();
    } else {
      object[key] = values;
    }
  }
  return canonical(object);
}

}  // namespace mlenv
