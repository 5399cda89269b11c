#pragma once
// What of a command and its variables a record does not keep: secrets, told by the rules below.
#include <string>
#include <string_view>
#include <vector>

namespace mlenv {

/// What stands for a secret in an argument or a text.
inline constexpr std::string_view kMasked = "***";

/// By its name, in any case: one that holds `password`, `passwd`, `passphrase`, `secret`,
/// `credential` or `apikey`, or of whose words (`HF_TOKEN`, `awsSecretKey`, `--api-key`) one ends
/// in `token` or is auth, authorization, bearer, cookie, pass, pat, pwd, or the last one is `key`.
bool is_secret_name(std::string_view name);

/// Arguments of a command: values of options with a secret name (`--token X`, `--token=X`, `X` in
/// `TOKEN=X`), what follows `Authorization:` or `Bearer` in a word, and logins in addresses,
/// replaced.
std::vector<std::string> without_secrets(const std::vector<std::string>& argv);

}  // namespace mlenv
