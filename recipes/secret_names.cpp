#include "recipes/secret_names.hpp"

#include <algorithm>
#include <array>

#include "base/paths.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

// A list of our own. What is known of names: GitHub's templates of .gitignore files, the paths that
// gitleaks and gitrob look at, and the documentation of the programs themselves. In lower case.
// A `*` at most in each.
constexpr auto kNames = std::to_array<std::string_view>(
    {// Variables of a project, and what a shell runs on entering it.
     ".env", ".env.*", ".envrc", ".secrets", "secrets.env",
     // Logins of programs that fetch and publish.
     ".netrc", "_netrc", ".git-credentials", ".gitcookies", ".pypirc", ".npmrc", ".dockercfg",
     ".htpasswd", ".terraformrc", "terraform.rc", ".vault-token", ".vault_pass", ".vault_pass.txt",
     // Of databases and storage.
     ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto", "rclone.conf",
     ".rclone.conf", ".databrickscfg", ".mongorc.js",
     // Of clouds.
     "kubeconfig", "*.kubeconfig", "credentials.json", "credentials.toml", "credentials.yml",
     "credentials.yaml", "credentials.ini", "credentials.csv", "client_secret*.json",
     "service-account*.json", "service_account*.json", "serviceaccount*.json",
     "application_default_credentials.json", "accesskeys.csv", "*_accesskeys.csv", "rootkey.csv",
     "kaggle.json", "*.tfstate", "*.tfvars", "*.tfvars.json", "secrets.json", "secrets.toml",
     "secrets.yml", "secrets.yaml", "*.publishsettings",
     // Keys.
     "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*_rsa", "*_dsa", "*_ecdsa", "*_ed25519",
     "ssh_host_*_key", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.pkcs12", "*.ppk", "*.jks",
     "*.keystore", "*.keytab", "*.kdbx", "*.kdb", "*.agekey", "*.ovpn", "secring.*",
     // What was typed, logins among it.
     ".bash_history", ".zsh_history", ".sh_history", ".python_history", ".psql_history",
     ".mysql_history", ".rediscli_history",
     // Folders.
     ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".kaggle", ".huggingface"});

/// The last parts of a path.
constexpr auto kPaths = std::to_array<std::string_view>(
    {".config/gcloud", ".config/gh/hosts.yml", ".config/hub", ".config/rclone", ".config/op",
     ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".docker/config.json",
     ".streamlit/secrets.toml", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
     ".composer/auth.json", ".local/share/keyrings", ".password-store"});

/// Endings of files with names to fill in.
constexpr std::array<std::string_view, 9> kExamples = {
    ".example", ".sample", ".template", ".tmpl", ".tpl", ".dist", ".defaults", ".schema", ".md"};

/// Endings of copies, longer ones first.
constexpr std::array<std::string_view, 46> kCopies = {
    ".dpkg-dist", ".dpkg-new", ".dpkg-old", ".original", ".rpmsave", ".ucf-dist", ".ucf-old",
    ".backup",    "_backup",   "-backup",   " backup",   ".rpmnew",  ".saved",    " - copy",
    "-copy",      "_copy",     ".copy",     " copy",     ".bkp",     ".back",     ".orig",
    ".save",      ".prev",     ".temp",     ".bak",      "_bak",     "-bak",      " bak",
    ".old",       "_old",      "-old",      " old",      ".sav",     ".tmp",      ".new",
    "_new",       "-new",      ".swp",      ".swo",      ".txt",     ".zst",      ".zip",
    ".bz2",       ".xz",       ".gz",       "~"};

bool fits(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  return name.size() + 1 >= pattern.size() && name.starts_with(pattern.substr(0, star)) &&
         name.ends_with(pattern.substr(star + 1));
}

bool is_name(std::string_view name) {
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view pattern) { return fits(pattern, name); });
}

bool is_example(std::string_view name) {
  return std::any_of(kExamples.begin(), kExamples.end(),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

/// ` (1)`, `.1`, ` 2`, `-20240131`, `.2024-01-31`: where it begins, or the length.
std::size_t number_at_end(std::string_view name) {
  std::size_t at = name.size();
  const bool in_brackets = name.ends_with(')');
  if (in_brackets) --at;
  const std::size_t end = at;
  while (at > 0 && (is_digit(name[at - 1]) || (name[at - 1] == '-' && at < end))) --at;
  if (at == end || at == 0) return name.size();
  const char before = name[at - 1];
  if (in_brackets) {
    if (before != '(' || at < 2) return name.size();
    return name[at - 2] == ' ' ? at - 2 : at - 1;
  }
  if (name[at] == '-') return at;
  return before == '.' || before == ' ' || before == '-' || before == '_' ? at - 1 : name.size();
}

/// Once; whether there was something.
bool shorten(std::string& name) {
  for (const std::string_view ending : kCopies) {
    if (name.size() > ending.size() && name.ends_with(ending)) {
      name.resize(name.size() - ending.size());
      return true;
    }
  }
  const std::size_t at = number_at_end(name);
  if (at == name.size() || at == 0) return false;
  name.resize(at);
  return true;
}

}  // namespace

std::string name_of_original(std::string_view given) {
  constexpr std::string_view kCopyOf = "copy of ";
  std::string name = to_lower(given);
  while (name.starts_with(kCopyOf)) name.erase(0, kCopyOf.size());
  if (name.size() > 2 && name.starts_with('#') && name.ends_with('#')) {
    name = name.substr(1, name.size() - 2);
  }
  while (shorten(name)) {
  }
  // `a copy 2.json`
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return name;
  std::string stem = name.substr(0, dot);
  while (shorten(stem)) {
  }
  return stem + name.substr(dot);
}

bool names_secret(std::string_view path) {
  const std::string lower = to_lower(path);
  const std::string last{last_part(lower)};
  if (is_example(last)) return false;
  if (is_name(last)) return true;
  const std::string original = name_of_original(last);
  // Of an editor: `.id_rsa.swp`
  const bool hidden = original.size() > 1 && original.front() == '.';
  if (original != last && !is_example(original) &&
      (is_name(original) || (hidden && is_name(original.substr(1))))) {
    return true;
  }
  const std::string beside = below(folder_of(lower), original);
  return std::any_of(kPaths.begin(), kPaths.end(), [&](std::string_view end) {
    const auto ends = [&](const std::string& one) {
      return one == end || (one.ends_with(end) && one[one.size() - end.size() - 1] == '/');
    };
    return ends(lower) || ends(beside);
  });
}

}  // namespace mlenv
