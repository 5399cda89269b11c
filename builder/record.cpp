#include "builder/record.hpp"

#include <vector>

#include "base/digest.hpp"
#include "base/error.hpp"

namespace mlenv {
namespace {

/// One CSV line (RFC 4180; a quoted field may hold a line break) from the front of `rest`.
std::vector<std::string> take_row(std::string_view& rest, std::string_view shown, int line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  std::size_t i = 0;
  for (; i < rest.size(); ++i) {
    const char c = rest[i];
    if (quoted && c == '"' && i + 1 < rest.size() && rest[i + 1] == '"') {
      fields.back() += rest[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && c == ',') {
      fields.emplace_back();
    } else if (!quoted && c == '\n') {
      ++i;
      break;
    } else if (quoted || c != '\r') {
      fields.back() += c;
    }
  }
  if (quoted) {
    throw failure("bad-wheel", "`{}` has a malformed RECORD", shown)
        .because(fmt::format("line {}: a quote is not closed", line));
  }
  rest.remove_prefix(i);
  return fields;
}

std::string quoted_where_needed(const std::string& field) {
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string result = "\"";
  for (const char c : field) {
    if (c == '"') result += '"';
    result += c;
  }
  return result + '"';
}

std::string base64_url(std::string_view hex) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string result;
  unsigned bits = 0;
  unsigned held = 0;
  for (const char c : hex) {
    bits = (bits << 4U) | static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
    held += 4;
    if (held < 6) continue;
    held -= 6;
    result += kAlphabet[(bits >> held) & 63U];
  }
  if (held > 0) result += kAlphabet[(bits << (6 - held)) & 63U];
  return result;
}

}  // namespace

Record parse_record(std::string_view csv, std::string_view shown) {
  Record record;
  for (int line = 1; !csv.empty(); ++line) {
    const std::vector<std::string> row = take_row(csv, shown, line);
    if (row.size() == 1 && row[0].empty()) continue;
    if (row.size() != 3) {
      throw failure("bad-wheel", "`{}` has a malformed RECORD", shown)
          .because(fmt::format("line {}: {} fields where 3 are needed", line, row.size()));
    }
    record[row[0]] = {row[1], row[2]};
  }
  return record;
}

std::string render_record(const Record& record) {
  std::string text;
  for (const auto& [path, entry] : record) {
    text += fmt::format("{},{},{}\n", quoted_where_needed(path), entry.hash, entry.size);
  }
  return text;
}

RecordEntry record_entry(std::string_view content) {
  return {"sha256=" + base64_url(Digest::of(content).hex()), std::to_string(content.size())};
}

}  // namespace mlenv
