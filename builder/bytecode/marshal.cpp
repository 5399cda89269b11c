#include "builder/bytecode/marshal.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/error.hpp"

namespace mlenv {
namespace {

// Type bytes of Python/marshal.c.
constexpr char kCode = 'c';
constexpr char kTuple = '(';
constexpr char kSmallTuple = ')';
constexpr char kFrozenSet = '>';
constexpr char kSet = '<';
constexpr char kReference = 'r';
constexpr char kLong = 'l';
constexpr char kBytes = 's';
constexpr unsigned kRefFlag = 0x80;
constexpr int kDepthLimit = 2000;  // marshal.c, MAX_MARSHAL_STACK_DEPTH

/// How a code object is laid out: numbers, then objects, the first line, then objects.
struct CodeLayout {
  std::size_t head_bytes;
  int objects;
  int tail_objects;
};

std::optional<CodeLayout> code_layout(int minor) {
  if (minor >= 8 && minor <= 10) return CodeLayout{24, 8, 1};
  if (minor >= 11 && minor <= 13) return CodeLayout{20, 8, 2};
  return std::nullopt;
}

using NodeId = std::uint32_t;
constexpr NodeId kNone = ~NodeId{0};

enum class Sort : unsigned char { atom, text, bytes, tuple, frozen_set, code };

struct Node {
  Sort sort = Sort::atom;
  char type = 0;          ///< of atoms
  bool interned = false;  ///< of text
  bool ascii = false;
  std::string_view payload{};      ///< raw bytes: of atoms behind the type byte, of text and bytes
  std::vector<NodeId> children{};  ///< of tuples, frozensets and code
  std::string_view head{};         ///< of code: the leading numbers
  std::string_view line{};         ///< of code: the first line
};

class Reader {
 public:
  Reader(ByteView data, CodeLayout layout) : data_(as_text(data)), layout_(layout) {}

  NodeId read_all() {
    const NodeId root = object(0);
    if (position_ != data_.size()) fail("bytes behind its end");
    return root;
  }

  std::vector<Node> nodes;

 private:
  [[noreturn]] static void fail(std::string_view what) {
    throw failure("bad-bytecode", "the interpreter's bytecode cannot be read")
        .because(std::string(what));
  }

  std::string_view take(std::size_t count) {
    if (count > data_.size() - position_) fail("it ends early");
    const std::string_view bytes = data_.substr(position_, count);
    position_ += count;
    return bytes;
  }

  std::size_t length() {
    const std::int32_t value = number();
    if (value < 0) fail("a negative length");
    return static_cast<std::size_t>(value);
  }

  std::int32_t number() {
    std::int32_t value = 0;
    std::memcpy(&value, take(4).data(), 4);  // little endian, as every supported machine
    return value;
  }

  NodeId add(Node node) {
    nodes.push_back(std::move(node));
    return static_cast<NodeId>(nodes.size() - 1);
  }

  NodeId object(int depth) {
    if (depth > kDepthLimit) fail("it is nested too deeply");
    const auto byte = static_cast<unsigned char>(take(1)[0]);
    const char type = static_cast<char>(byte & ~kRefFlag);
    if (type == kReference) {
      const std::size_t index = length();
      if (index >= references_.size() || references_[index] == kNone)
        fail("a reference to nothing");
      return references_[index];
    }
    // Containers take their place in the table before their content (r_ref_reserve).
    const std::size_t slot = references_.size();
    if ((byte & kRefFlag) != 0) references_.push_back(kNone);
    const NodeId id = add(value(type, depth));
    if ((byte & kRefFlag) != 0) references_[slot] = id;
    return id;
  }

  Node value(char type, int depth) {
    switch (type) {
      case 'N':
      case 'F':
      case 'T':
      case '.':
      case 'S':
        return atom(type, 0);
      case 'i':
        return atom(type, 4);
      case 'g':
        return atom(type, 8);
      case 'y':
        return atom(type, 16);
      case kLong:
        return big_number();
      case kBytes:
        return {.sort = Sort::bytes, .payload = take(length())};
      case 'u':
      case 't':
      case 'a':
      case 'A':
        return text(type == 't' || type == 'A', type == 'a' || type == 'A', length());
      case 'z':
      case 'Z':
        return text(type == 'Z', true, static_cast<unsigned char>(take(1)[0]));
      case kSmallTuple:
        return sequence(Sort::tuple, static_cast<unsigned char>(take(1)[0]), depth);
      case kTuple:
        return sequence(Sort::tuple, length(), depth);
      case kFrozenSet:
      case kSet:
        return sequence(Sort::frozen_set, length(), depth);
      case kCode:
        return code(depth);
      default:
        fail(fmt::format("an object of unknown type `{}`", type));
    }
  }

  Node atom(char type, std::size_t size) {
    return {.sort = Sort::atom, .type = type, .payload = take(size)};
  }

  Node big_number() {
    const std::size_t start = position_;
    const std::int64_t digits = number();
    take(2 * static_cast<std::size_t>(digits < 0 ? -digits : digits));
    return {.sort = Sort::atom, .type = kLong, .payload = data_.substr(start, position_ - start)};
  }

  Node text(bool interned, bool ascii, std::size_t size) {
    return {.sort = Sort::text, .interned = interned, .ascii = ascii, .payload = take(size)};
  }

  Node sequence(Sort sort, std::size_t count, int depth) {
    if (count > data_.size()) fail("it ends early");
    Node node{.sort = sort};
    node.children.reserve(count);
    for (std::size_t i = 0; i < count; ++i) node.children.push_back(object(depth + 1));
    return node;
  }

  Node code(int depth) {
    Node node{.sort = Sort::code};
    node.head = take(layout_.head_bytes);
    for (int i = 0; i < layout_.objects; ++i) node.children.push_back(object(depth + 1));
    node.line = take(4);
    for (int i = 0; i < layout_.tail_objects; ++i) node.children.push_back(object(depth + 1));
    return node;
  }

  std::string_view data_;
  CodeLayout layout_;
  std::size_t position_ = 0;
  std::vector<NodeId> references_;
};

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_one_character(std::string_view utf8) {
  std::size_t starts = 0;
  for (const char c : utf8) starts += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return starts == 1;
}

/// Shares equal values and fixes what CPython leaves to chance.
class Canon {
 public:
  explicit Canon(std::vector<Node>& nodes) : nodes_(nodes), done_(nodes.size(), kNone) {}

  /// The canonical node for `id`.
  NodeId visit(NodeId id) {
    if (done_[id] != kNone) return done_[id];
    Node& node = nodes_[id];
    if (node.sort == Sort::text && !node.interned) {
      node.interned = is_one_character(node.payload) ||
                      (node.ascii && !node.payload.empty() &&
                       std::all_of(node.payload.begin(), node.payload.end(), is_name_character));
    }
    for (NodeId& child : node.children) child = visit(child);
    if (node.sort == Sort::frozen_set) {
      std::sort(node.children.begin(), node.children.end(),
                [this](NodeId a, NodeId b) { return content(a) < content(b); });
    }
    NodeId result = id;
    if (node.sort != Sort::code) result = shared_.emplace(key(node), id).first->second;
    done_[id] = result;
    return result;
  }

 private:
  /// Equal for equal values; children are canonical, so their numbers stand for their values.
  static std::string key(const Node& node) {
    std::string text;
    text += static_cast<char>(node.sort);
    text += node.type;
    text += static_cast<char>((node.interned ? 1 : 0) + (node.ascii ? 2 : 0));
    text += node.payload;
    for (const NodeId child : node.children) {
      text.append(reinterpret_cast<const char*>(&child), sizeof child);
    }
    return text;
  }

  /// Bytes that depend on the value alone, to sort by.
  std::string content(NodeId id) const {
    const Node& node = nodes_[id];
    std::string text;
    text += static_cast<char>(node.sort);
    text += node.type;
    text += static_cast<char>((node.interned ? 1 : 0) + (node.ascii ? 2 : 0));
    text += fmt::format("{}:", node.payload.size());
    text += node.payload;
    for (const NodeId child : node.children) text += content(child);
    return text;
  }

  std::vector<Node>& nodes_;
  std::vector<NodeId> done_;
  std::unordered_map<std::string, NodeId> shared_;
};

class Writer {
 public:
  explicit Writer(const std::vector<Node>& nodes)
      : nodes_(nodes), uses_(nodes.size()), index_(nodes.size(), kNone) {}

  std::string write_all(NodeId root) {
    count(root);
    write(root);
    return std::move(out_);
  }

 private:
  static bool referable(const Node& node) {
    return node.sort != Sort::code && (node.sort != Sort::atom || !node.payload.empty());
  }

  void count(NodeId id) {
    const Node& node = nodes_[id];
    if (referable(node) && ++uses_[id] > 1) return;
    for (const NodeId child : node.children) count(child);
  }

  void number(std::size_t value) {
    const auto narrow = static_cast<std::uint32_t>(value);
    std::array<char, 4> bytes{};
    std::memcpy(bytes.data(), &narrow, 4);
    out_.append(bytes.data(), bytes.size());
  }

  void write(NodeId id) {
    const Node& node = nodes_[id];
    unsigned flag = 0;
    if (referable(node)) {
      if (index_[id] != kNone) {
        out_ += kReference;
        return number(index_[id]);
      }
      if (uses_[id] > 1) {
        flag = kRefFlag;
        index_[id] = next_index_++;
      }
    }
    auto type = [&](char letter) {
      out_ += static_cast<char>(static_cast<unsigned>(letter) | flag);
    };
    switch (node.sort) {
      case Sort::atom:
        type(node.type);
        out_ += node.payload;
        break;
      case Sort::bytes:
        type(kBytes);
        number(node.payload.size());
        out_ += node.payload;
        break;
      case Sort::text:
        write_text(node, flag);
        break;
      case Sort::tuple:
        if (node.children.size() < 256) {
          type(kSmallTuple);
          out_ += static_cast<char>(node.children.size());
        } else {
          type(kTuple);
          number(node.children.size());
        }
        for (const NodeId child : node.children) write(child);
        break;
      case Sort::frozen_set:
        type(kFrozenSet);
        number(node.children.size());
        for (const NodeId child : node.children) write(child);
        break;
      case Sort::code:
        write_code(node);
        break;
    }
  }

  void write_text(const Node& node, unsigned flag) {
    const bool brief = node.ascii && node.payload.size() < 256;
    char letter = node.interned ? 't' : 'u';
    if (node.ascii) letter = node.interned ? 'A' : 'a';
    if (brief) letter = node.interned ? 'Z' : 'z';
    out_ += static_cast<char>(static_cast<unsigned>(letter) | flag);
    if (brief) {
      out_ += static_cast<char>(node.payload.size());
    } else {
      number(node.payload.size());
    }
    out_ += node.payload;
  }

  void write_code(const Node& node) {
    out_ += kCode;
    out_ += node.head;
    constexpr std::size_t kBeforeLine = 8;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      if (i == kBeforeLine) out_ += node.line;
      write(node.children[i]);
    }
  }

  const std::vector<Node>& nodes_;
  std::vector<std::uint32_t> uses_;
  std::vector<std::uint32_t> index_;
  std::uint32_t next_index_ = 0;
  std::string out_;
};

}  // namespace

bool marshal_supported(int python_minor) { return code_layout(python_minor).has_value(); }

std::string canonical_marshal(ByteView marshalled, int python_minor) {
  const std::optional<CodeLayout> layout = code_layout(python_minor);
  if (!layout) {
    throw failure("bad-bytecode", "bytecode of Python 3.{} is not known to this mlenv",
                  python_minor)
        .hint("set `bytecode: false` in the recipe");
  }
  Reader reader{marshalled, *layout};
  const NodeId root = reader.read_all();
  const NodeId canonical_root = Canon{reader.nodes}.visit(root);
  return Writer{reader.nodes}.write_all(canonical_root);
}

}  // namespace mlenv
