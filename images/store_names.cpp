#include "images/store_names.hpp"

#include <charconv>

#include "base/error.hpp"
#include "base/size_limits.hpp"
#include "base/small_file.hpp"
#include "base/text.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kLongestFileName = 255;

bool is_plain(char c) {
  return is_alphanumeric(c) || c == '.' || c == '_' || c == '-' || c == ':' || c == '@';
}

std::string encode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    // No file begins with a dot: those are other programs'.
    if (is_plain(c) && (c != '.' || !out.empty())) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace

std::string name_file(const Reference& reference) {
  std::string name = reference.host().empty() ? "" : reference.host() + "/";
  name += reference.repository();
  if (!reference.tag().empty()) {
    name += ":" + reference.tag();
  } else if (reference.digest()) {
    name += "@" + reference.digest()->str();
  }
  std::string file = encode(name);
  if (file.size() <= kLongestFileName) return file;
  throw usage_error("bad-reference", "the name `{}` is too long for a file name", name)
      .hint("tag the image under a shorter name");
}

std::optional<std::string> name_of_file(std::string_view file) {
  std::string name;
  for (std::size_t at = 0; at < file.size(); ++at) {
    if (file[at] != '%') {
      name.push_back(file[at]);
      continue;
    }
    unsigned code = 0;
    const char* begin = file.data() + at + 1;
    if (at + 2 >= file.size() || std::from_chars(begin, begin + 2, code, 16).ptr != begin + 2) {
      return std::nullopt;
    }
    name.push_back(static_cast<char>(code));
    at += 2;
  }
  if (encode(name) != file) return std::nullopt;
  return name;
}

std::optional<Digest> read_name(const fs::path& file) {
  auto text = read_small_file_if_exists(file, size_limit::kKiB);
  if (!text || !text->ends_with('\n')) return std::nullopt;
  text->pop_back();
  try {
    return Digest::parse(*text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace mlenv
