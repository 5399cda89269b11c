#pragma once
// Names of files and folders under which programs and people keep logins and private keys.
#include <string>
#include <string_view>

namespace mlenv {

/// Whether the last part of `path`, or its last parts, have such a name, in any case: its own
/// (`id_rsa`, `key.PEM`, `.env.production`), or that of a copy (`id_rsa.old`, `.env copy`,
/// `credentials.json~`). Examples that are made to be given away (`.env.example`) have not.
bool names_secret(std::string_view path);

/// Without what editors, people and package managers add to the name of a copy: `key.pem~` is
/// `key.pem`, `Copy of a.json` and `a copy 2.json` are `a.json`. In lower case.
std::string name_of_original(std::string_view given);

}  // namespace mlenv
