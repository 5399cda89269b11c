#include "recipes/resolve/release_signature.hpp"

#include <fcntl.h>
#include <algorithm>
#include <cstddef>
#include <ctime>

#include <rnp/rnp.h>
#include <rnp/rnp_err.h>

#include "base/error.hpp"
#include "base/handle.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "recipes/distribution.hpp"

namespace mlenv {
namespace {

using Ffi = Owned<rnp_ffi_destroy>::of<rnp_ffi_st>;
using RnpInput = Owned<rnp_input_destroy>::of<rnp_input_st>;
using RnpOutput = Owned<rnp_output_destroy>::of<rnp_output_st>;
using Verification = Owned<rnp_op_verify_destroy>::of<rnp_op_verify_st>;
using SignatureHandle = Owned<rnp_signature_handle_destroy>::of<rnp_signature_handle_st>;
using KeyHandle = Owned<rnp_key_handle_destroy>::of<rnp_key_handle_st>;
using Buffer = Owned<rnp_buffer_destroy>::of<char>;

/// RFC 4880 section 7.
constexpr std::string_view kSignedMessage = "-----BEGIN PGP SIGNED MESSAGE-----\n";
constexpr std::string_view kKeyringHint =
    "install the package debian-archive-keyring (for Ubuntu ubuntu-keyring), or name a keyring "
    "with `signed-by` in the recipe's sources";

void check(rnp_result_t result, std::string_view doing) {
  if (result == RNP_SUCCESS) return;
  throw failure("openpgp", "librnp failed at {}", doing).because(rnp_result_to_string(result));
}

RnpInput open_input(std::string_view text) {
  rnp_input_t input = nullptr;
  const auto* data = reinterpret_cast<const std::uint8_t*>(text.data());
  check(rnp_input_from_memory(&input, data, text.size(), false), "reading from memory");
  return RnpInput{input};
}

std::string key_id(rnp_op_verify_signature_t signature) {
  rnp_signature_handle_t handle = nullptr;
  if (rnp_op_verify_signature_get_handle(signature, &handle) != RNP_SUCCESS) return "unknown";
  const SignatureHandle owned{handle};
  char* text = nullptr;
  if (rnp_signature_get_keyid(handle, &text) != RNP_SUCCESS || text == nullptr) return "unknown";
  return Buffer{text}.get();
}

std::string fault(rnp_op_verify_signature_t signature) {
  const rnp_result_t status = rnp_op_verify_signature_get_status(signature);
  std::string_view why = "does not match the text, or its key has been revoked";
  if (status == RNP_ERROR_KEY_NOT_FOUND) why = "is by a key that is not in the keyring";
  if (status == RNP_ERROR_SIGNATURE_EXPIRED) why = "has expired";
  if (status == RNP_ERROR_SIGNATURE_UNKNOWN) why = "is of a kind that librnp does not know";
  return fmt::format("the signature by key {} {}", key_id(signature), why);
}

/// librnp accepts what a key signed before it expired; an archive goes on signing, so that a key
/// which has expired since is as good as none (apt sees it so too).
bool is_key_expired(rnp_op_verify_signature_t signature) {
  rnp_key_handle_t key = nullptr;
  if (rnp_op_verify_signature_get_key(signature, &key) != RNP_SUCCESS) return true;
  const KeyHandle owned{key};
  std::uint64_t until = 0;
  if (rnp_key_valid_till64(key, &until) != RNP_SUCCESS) return true;
  return until < static_cast<std::uint64_t>(std::time(nullptr));
}

std::vector<std::string> faults(rnp_op_verify_t verification, bool& any_valid) {
  std::vector<std::string> found;
  std::size_t count = 0;
  check(rnp_op_verify_get_signature_count(verification, &count), "counting signatures");
  for (std::size_t i = 0; i < count; ++i) {
    rnp_op_verify_signature_t signature = nullptr;
    check(rnp_op_verify_get_signature_at(verification, i, &signature), "reading a signature");
    if (rnp_op_verify_signature_get_status(signature) != RNP_SUCCESS) {
      found.push_back(fault(signature));
    } else if (is_key_expired(signature)) {
      found.push_back(fmt::format("the key {} has expired", key_id(signature)));
    } else {
      any_valid = true;
    }
  }
  return found;
}

std::string signed_text(rnp_output_t output) {
  std::uint8_t* data = nullptr;
  std::size_t size = 0;
  check(rnp_output_memory_get_buf(output, &data, &size, false), "reading the signed text");
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace

struct Keyring::State {
  Ffi ffi;
};

Keyring::Keyring() : state_(std::make_unique<State>()) {
  rnp_ffi_t ffi = nullptr;
  check(rnp_ffi_create(&ffi, "GPG", "GPG"), "starting");
  state_->ffi.reset(ffi);
  // librnp reports each key that it skips on stderr, which is ours.
  (void)rnp_ffi_set_log_fd(ffi, open_file("/dev/null", O_WRONLY).release());
}
Keyring::Keyring(Keyring&&) noexcept = default;
Keyring& Keyring::operator=(Keyring&&) noexcept = default;
Keyring::~Keyring() = default;

void Keyring::add_text(std::string_view keys, std::string_view what) {
  const auto count = [&] {
    std::size_t keys_held = 0;
    check(rnp_get_public_key_count(state_->ffi.get(), &keys_held), "counting keys");
    return keys_held;
  };
  const std::size_t before = count();
  const RnpInput input = open_input(keys);
  const rnp_result_t result =
      rnp_import_keys(state_->ffi.get(), input.get(),
                      RNP_LOAD_SAVE_PUBLIC_KEYS | RNP_LOAD_SAVE_PERMISSIVE, nullptr);
  if (result != RNP_SUCCESS) {
    throw failure("no-keyring", "cannot read the keys in {}", what)
        .because(rnp_result_to_string(result))
        .hint(std::string(kKeyringHint));
  }
  if (count() == before && before == 0) {
    throw failure("no-keyring", "there are no usable keys in {}", what)
        .hint(std::string(kKeyringHint));
  }
}

void Keyring::add_file(const fs::path& path) {
  const auto keys = read_small_file_if_exists(path, size_limit::kKeyring);
  if (!keys) {
    throw failure("no-keyring", "the keyring `{}` does not exist", path.string())
        .hint(std::string(kKeyringHint));
  }
  add_text(*keys, "`" + path.string() + "`");
}

std::string Keyring::verified_text(std::string_view in_release, std::string_view what) const {
  Error error = failure("bad-signature", "{} is not signed by a key that may sign it", what);
  error.hint(
      "update the package debian-archive-keyring on this machine; if it is new, do not trust "
      "this mirror");
  if (!in_release.starts_with(kSignedMessage)) {
    throw std::move(error).because("it holds no OpenPGP signature");
  }
  const RnpInput input = open_input(in_release);
  rnp_output_t output = nullptr;
  check(rnp_output_to_memory(&output, 0), "writing to memory");
  const RnpOutput owned_output{output};
  rnp_op_verify_t operation = nullptr;
  check(rnp_op_verify_create(&operation, state_->ffi.get(), input.get(), output), "verifying");
  const Verification verification{operation};
  const rnp_result_t result = rnp_op_verify_execute(operation);
  bool any_valid = false;
  std::vector<std::string> why = faults(operation, any_valid);
  if (any_valid && result == RNP_SUCCESS) return signed_text(output);
  if (why.empty()) why.emplace_back("its OpenPGP signature is malformed");
  for (std::string& reason : why) error.because(std::move(reason));
  throw std::move(error);
}

Keyring trusted_keyring(const fs::path& root) {
  const fs::path folder = root / "etc/apt/trusted.gpg.d";
  std::vector<fs::path> files;
  std::error_code absent;
  for (fs::directory_iterator entry{folder, absent}; entry != fs::directory_iterator{};
       entry.increment(absent)) {
    const std::string extension = entry->path().extension().string();
    if (extension == ".gpg" || extension == ".asc") files.push_back(entry->path());
  }
  if (files.empty()) {
    throw failure("no-keyring", "there are no keyrings in `{}`", folder.string())
        .hint(std::string(kKeyringHint));
  }
  std::sort(files.begin(), files.end());
  Keyring keyring;
  for (const fs::path& file : files) keyring.add_file(file);
  return keyring;
}

Keyring archive_keyring(std::string_view distribution, const fs::path& root) {
  const Distribution* known = find_distribution(distribution);
  if (known == nullptr) throw failure("no-keyring", "`{}` has no known keyring", distribution);
  for (const std::string_view ending : {".gpg", ".pgp"}) {
    const fs::path path = root / "usr/share/keyrings" / fmt::format("{}{}", known->keyring, ending);
    std::error_code absent;
    if (!fs::exists(path, absent)) continue;
    Keyring keyring;
    keyring.add_file(path);
    return keyring;
  }
  const auto release =
      read_small_file_if_exists(root / "etc/os-release", size_limit::kMachineConfig);
  if (!release || os_release_value(*release, "ID") == distribution) {
    return while_doing("looking for the archive's keyring on this machine",
                       [&] { return trusted_keyring(root); });
  }
  const std::string name{known->keyring};
  throw failure("no-keyring", "this machine has no keys of {}'s archive", known->name)
      .because(fmt::format("there is no `{}.gpg`", (root / "usr/share/keyrings" / name).string()))
      .hint(fmt::format("install the package {}, or name a keyring with `signed-by` in the "
                        "recipe's sources",
                        known->keyring_package));
}

}  // namespace mlenv
