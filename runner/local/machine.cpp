#include "runner/local/machine.hpp"

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "recipes/distribution.hpp"
#include "recipes/image_sources.hpp"
#include "recipes/resolve/debian.hpp"

extern "C" char** environ;  // NOLINT(readability-redundant-declaration)

namespace mlenv {
namespace {

constexpr std::array kPassedVariables = {
    "http_proxy",    "https_proxy",        "ftp_proxy",
    "all_proxy",     "no_proxy",           "HTTP_PROXY",
    "HTTPS_PROXY",   "FTP_PROXY",          "ALL_PROXY",
    "NO_PROXY",      "PIP_INDEX_URL",      "PIP_EXTRA_INDEX_URL",
    "PIP_NO_INDEX",  "PIP_TRUSTED_HOST",   "PIP_DEFAULT_TIMEOUT",
    "UV_INDEX_URL",  "UV_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX",
    "UV_INDEX",      "UV_NO_INDEX",        "UV_INSECURE_HOST",
    "UV_NATIVE_TLS", "UV_HTTP_TIMEOUT",
};
/// First lines of what may be the image's own, or ours, which a kept layer has from a run before.
constexpr std::string_view kOurHeading = "# This machine's settings, put here by `mlenv run`\n";
constexpr std::string_view kOurAptSources =
    "# This machine's package sources, put here by `mlenv run`\n";

/// `UV_INDEX_NAME_USERNAME` and its kin: logins of named indexes.
constexpr std::string_view kPassedPrefix = "UV_INDEX_";

/// Each names a file of certificates.
constexpr std::array kCertificates = {
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "AWS_CA_BUNDLE",
    "HTTPLIB2_CA_CERTS",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
};

/// A file of the host; nullopt also when it may not be read.
std::optional<std::string> host_file(const Machine& machine, const fs::path& path) {
  try {
    return read_file_if_exists(machine.root / path.relative_path());
  } catch (const Error& error) {
    log::debug("left out of the container: {}", error.what());
    return std::nullopt;
  }
}

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

template <typename Take>
void for_each_line(std::string_view text, Take&& take) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    take(text.substr(0, end));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

/// Puts a file into the machine's folder; its path in the container.
std::string bring_file(const Machine& machine, const std::string& name, std::string_view text) {
  make_folders(machine.folder);
  const Fd fd = open_file(machine.folder / name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  (void)::fchmod(fd.get(), 0644);  // whatever the umask is: apt's own user reads keyrings
  write_all(fd.get(), as_bytes(text));
  return std::string(kMachineTarget) + "/" + name;
}

/// Copies certificate files into the container, each once. Not at their path on the host: there a
/// package of the image may want to write (`ca-certificates`).
class Certificates {
 public:
  explicit Certificates(const Machine& machine) : machine_(machine) {}
  /// The path in the container, or nullopt when the host has no such file.
  std::optional<std::string> bring(const std::string& path) {
    if (path.empty() || path.front() != '/') return std::nullopt;
    if (const auto known = brought_.find(path); known != brought_.end()) return known->second;
    std::error_code error;
    if (!fs::is_regular_file(machine_.root / fs::path(path).relative_path(), error)) {
      return std::nullopt;
    }
    const std::optional<std::string> text = host_file(machine_, path);
    if (!text) return std::nullopt;
    std::string target =
        bring_file(machine_, "certificates-" + std::to_string(brought_.size() + 1) + ".pem", *text);
    brought_.emplace(path, target);
    return target;
  }

 private:
  const Machine& machine_;
  std::map<std::string, std::string> brought_;
};

Variables passed_variables(const Machine& machine, Certificates& certificates) {
  Variables passed;
  for (const auto& [name, value] : machine.environment) {
    const bool listed =
        std::find(kPassedVariables.begin(), kPassedVariables.end(), name) != kPassedVariables.end();
    if (listed || name.starts_with(kPassedPrefix)) passed.emplace(name, value);
  }
  for (const char* name : kCertificates) {
    const auto set = machine.environment.find(name);
    if (set == machine.environment.end()) continue;
    if (const auto path = certificates.bring(set->second)) passed.emplace(name, *path);
  }
  return passed;
}

bool begins_with(const ImageRoot& image, const std::string& path, std::string_view line) {
  return image.read(path, line.size()) == line;
}

constexpr std::string_view kLogins = "/etc/apt/auth.conf.d/";
constexpr std::string_view kAptSources = "/etc/apt/sources.list.d/mlenv.sources";
constexpr std::string_view kAptSettings = "/etc/apt/apt.conf.d/99mlenv";

void write_setting(const ImageRoot& image, const Machine& machine, const std::string& path,
                   std::string_view text, mode_t mode = 0644) {
  if (machine.written != nullptr) machine.written->push_back(path);
  image.write(path, text, mode);
}

void bring_network(const ImageRoot& image, const Machine& machine) {
  for (const char* path : {"/etc/resolv.conf", "/etc/hosts"}) {
    if (const auto text = host_file(machine, path)) image.write(path, *text);
  }
}

/// pip.conf with its `cert = PATH` leading to the copy in the container, or left out.
std::string with_certificates(std::string_view text, Certificates& certificates) {
  std::string result;
  for_each_line(text, [&](std::string_view line) {
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos || trimmed(line.substr(0, equals)) != "cert") {
      result.append(line).push_back('\n');
    } else if (const auto path =
                   certificates.bring(std::string(trimmed(line.substr(equals + 1))))) {
      result += "cert = " + *path + "\n";
    }
  });
  return result;
}

void bring_python(const ImageRoot& image, const Machine& machine, Certificates& certificates) {
  struct Settings {
    fs::path host;
    std::string target;
  };
  std::vector<Settings> files{{"/etc/pip.conf", "/etc/pip.conf"},
                              {"/etc/uv/uv.toml", "/etc/uv/uv.toml"}};
  if (const auto home = machine.environment.find("HOME"); home != machine.environment.end()) {
    const auto set = machine.environment.find("XDG_CONFIG_HOME");
    const fs::path config = set != machine.environment.end() && !set->second.empty()
                                ? fs::path(set->second)
                                : fs::path(home->second) / ".config";
    files.push_back({config / "pip/pip.conf", machine.home + "/.config/pip/pip.conf"});
    files.push_back({config / "uv/uv.toml", machine.home + "/.config/uv/uv.toml"});
  }
  for (const Settings& file : files) {
    const std::optional<std::string> text = host_file(machine, file.host);
    const bool is_images_own =
        image.exists(file.target) && !begins_with(image, file.target, kOurHeading);
    if (text && !is_images_own) {
      // They may hold logins: readable by the job alone.
      write_setting(image, machine, file.target,
                    std::string(kOurHeading) + with_certificates(*text, certificates), 0600);
    }
  }
}

bool has_apt_sources(const ImageRoot& image) {
  bool found = false;
  if (const auto list = image.read("/etc/apt/sources.list")) {
    for_each_line(*list, [&](std::string_view line) {
      line = trimmed(line);
      found = found || (!line.empty() && line.front() != '#');
    });
  }
  for (const std::string& name : image.list("/etc/apt/sources.list.d")) {
    if (kExtraSources.ends_with("/" + name)) continue;
    if (begins_with(image, "/etc/apt/sources.list.d/" + name, kOurAptSources)) continue;
    found = found || name.ends_with(".list") || name.ends_with(".sources");
  }
  return found;
}

std::vector<DebianSource> machine_sources(const ImageRoot& image, const Machine& machine) {
  const std::string release = image.read("/etc/os-release").value_or("");
  Recipe recipe;
  recipe.distribution = os_release_value(release, "ID");
  recipe.suite = os_release_value(release, "VERSION_CODENAME");
  if (recipe.distribution.empty() || recipe.suite.empty()) return {};
  recipe.base.text = recipe.distribution + ":" + recipe.suite;
  try {
    return debian_sources(recipe, machine.root);
  } catch (const Error& error) {  // a machine without apt has none: apt then says so in the run
    log::debug("no apt sources for the container: {}", error.what());
    return {};
  }
}

/// The keyring that signs `source`, copied; empty: the image's own.
std::string bring_keyring(const Machine& machine, const DebianSource& source) {
  if (source.signed_by.empty()) return {};
  const std::optional<std::string> keys = host_file(machine, source.signed_by);
  if (!keys) return {};
  return bring_file(machine, source.signed_by.filename().string(), *keys);
}

void bring_apt_sources(const ImageRoot& image, const Machine& machine) {
  std::string text{kOurAptSources};
  const std::vector<DebianSource> sources = machine_sources(image, machine);
  for (const DebianSource& source : sources) {
    text += "\nTypes: deb\nURIs:";
    for (const std::string& uri : source.uris) text += " " + uri;
    text += "\nSuites: " + source.suite + "\nComponents:";
    for (const std::string& component : source.components) text += " " + component;
    const std::string keyring = bring_keyring(machine, source);
    if (!keyring.empty()) text += "\nSigned-By: " + keyring;
    text += "\n";
  }
  if (!sources.empty()) write_setting(image, machine, std::string(kAptSources), text);
}

/// Whether this is a whole `Acquire::… "…";` statement that means the same in the container (paths
/// of certificates do not).
bool is_acquire_statement(std::string_view line) {
  const std::string lower = to_lower(line);
  return lower.starts_with("acquire::") && lower.ends_with(";") &&
         lower.find('{') == std::string::npos && lower.find("::cainfo") == std::string::npos &&
         lower.find("::sslcert") == std::string::npos &&
         lower.find("::sslkey") == std::string::npos;
}

std::vector<fs::path> files_in(const Machine& machine, const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(machine.root / folder.relative_path(), error)) {
    if (entry.is_regular_file(error)) files.push_back(folder / entry.path().filename());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void bring_apt_settings(const ImageRoot& image, const Machine& machine,
                        Certificates& certificates) {
  std::string text = "// Put here by `mlenv run`\n";
  std::vector<fs::path> files = files_in(machine, "/etc/apt/apt.conf.d");
  files.emplace_back("/etc/apt/apt.conf");
  for (const fs::path& file : files) {
    for_each_line(host_file(machine, file).value_or(""), [&](std::string_view line) {
      if (is_acquire_statement(trimmed(line))) text.append(trimmed(line)).push_back('\n');
    });
  }
  if (const auto set = machine.environment.find("SSL_CERT_FILE");
      set != machine.environment.end()) {
    if (const auto path = certificates.bring(set->second)) {
      text += "Acquire::https::CAInfo \"" + *path + "\";\n";
    }
  }
  // apt drops to the user `_apt` for downloads; with a single id there is no such user.
  if (machine.single_id) text += "APT::Sandbox::User \"root\";\n";
  write_setting(image, machine, std::string(kAptSettings), text);
  for (const fs::path& file : files_in(machine, "/etc/apt/auth.conf.d")) {
    if (const auto logins = host_file(machine, file)) {
      write_setting(image, machine, file.string(), *logins, 0600);
    }
  }
}

}  // namespace

std::vector<std::string> bring_machine(const ImageRoot& image, const Machine& machine) {
  Certificates certificates{machine};
  if (machine.network) bring_network(image, machine);
  const Variables passed = passed_variables(machine, certificates);
  bring_python(image, machine, certificates);
  if (image.exists("/usr/bin/apt-get")) {
    bring_apt_settings(image, machine, certificates);
    if (!has_apt_sources(image)) bring_apt_sources(image, machine);
  }
  std::vector<std::string> variables;
  variables.reserve(passed.size());
  for (const auto& [name, value] : passed) variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

void take_back(const ImageRoot& image, const std::vector<std::string>& written) {
  for (const std::string& path : written) {
    // Logins have no line that says whose they are: apt reads the whole file.
    if (path.starts_with(kLogins) || path == kAptSettings ||
        begins_with(image, path, kOurHeading) || begins_with(image, path, kOurAptSources)) {
      image.remove(path);
    }
  }
}

Variables caller_variables() {
  Variables environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) {
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  return environment;
}

}  // namespace mlenv
