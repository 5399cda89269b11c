#include "builder/bytecode/marshal.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory_resource>
#include <optional>
#include <span>
#include <unordered_set>
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
  std::string_view payload{};   ///< raw bytes: of atoms behind the type byte, of text and bytes
  std::size_t first_child = 0;  ///< of tuples, frozensets and code: where in Objects::children
  std::size_t child_count = 0;
  std::string_view head{};  ///< of code: the leading numbers
  std::string_view line{};  ///< of code: the first line
};

/// All of one file: in two arrays, as an allocation for each object would cost more than reading
/// it.
struct Objects {
  std::vector<Node> nodes;
  std::vector<NodeId> children;

  std::span<NodeId> children_of(const Node& node) {
    return std::span(children).subspan(node.first_child, node.child_count);
  }
  std::span<const NodeId> children_of(const Node& node) const {
    return std::span(children).subspan(node.first_child, node.child_count);
  }
};

class Reader {
 public:
  Reader(ByteView data, CodeLayout layout) : data_(as_text(data)), layout_(layout) {}

  NodeId read_all() {
    const NodeId root = object(0);
    if (position_ != data_.size()) fail("bytes behind its end");
    return root;
  }

  Objects objects;

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

  NodeId add(const Node& node) {
    objects.nodes.push_back(node);
    return static_cast<NodeId>(objects.nodes.size() - 1);
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

  /// Children are read into `open_`, which their own children use behind them, and moved out whole.
  void take_children(Node& node, std::size_t start) {
    std::vector<NodeId>& all = objects.children;
    node.first_child = all.size();
    node.child_count = open_.size() - start;
    all.insert(all.end(), open_.begin() + static_cast<std::ptrdiff_t>(start), open_.end());
    open_.resize(start);
  }

  void read_child(int depth) {
    const NodeId id = object(depth + 1);
    open_.push_back(id);
  }

  Node sequence(Sort sort, std::size_t count, int depth) {
    if (count > data_.size()) fail("it ends early");
    Node node{.sort = sort};
    const std::size_t start = open_.size();
    for (std::size_t i = 0; i < count; ++i) read_child(depth);
    take_children(node, start);
    return node;
  }

  Node code(int depth) {
    Node node{.sort = Sort::code};
    const std::size_t start = open_.size();
    node.head = take(layout_.head_bytes);
    for (int i = 0; i < layout_.objects; ++i) read_child(depth);
    node.line = take(4);
    for (int i = 0; i < layout_.tail_objects; ++i) read_child(depth);
    take_children(node, start);
    return node;
  }

  std::string_view data_;
  CodeLayout layout_;
  std::size_t position_ = 0;
  std::vector<NodeId> references_;
  std::vector<NodeId> open_;  ///< children of the sequences being read
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
  explicit Canon(Objects& objects)
      : objects_(objects),
        done_(objects.nodes.size(), kNone),
        shared_(objects.nodes.size(), Hash{objects}, Equal{objects}, &memory_) {}

  /// The canonical node for `id`.
  NodeId visit(NodeId id) {
    if (done_[id] != kNone) return done_[id];
    Node& node = objects_.nodes[id];
    if (node.sort == Sort::text && !node.interned) {
      node.interned = is_one_character(node.payload) ||
                      (node.ascii && !node.payload.empty() &&
                       std::all_of(node.payload.begin(), node.payload.end(), is_name_character));
    }
    const std::span<NodeId> children = objects_.children_of(node);
    for (NodeId& child : children) child = visit(child);
    if (node.sort == Sort::frozen_set) {
      std::sort(children.begin(), children.end(),
                [this](NodeId a, NodeId b) { return content(a) < content(b); });
    }
    const NodeId result = node.sort == Sort::code ? id : *shared_.insert(id).first;
    done_[id] = result;
    return result;
  }

 private:
  // Children are canonical when these are asked, so their numbers stand for their values.
  struct Hash {
    const Objects& objects;
    std::size_t operator()(NodeId id) const {
      const Node& node = objects.nodes[id];
      const auto children = objects.children_of(node);
      const std::hash<std::string_view> hash;
      return hash(node.payload) * 31 + hash(as_text(std::as_bytes(children))) * 7 + traits(node);
    }
  };
  struct Equal {
    const Objects& objects;
    bool operator()(NodeId left, NodeId right) const {
      const Node& a = objects.nodes[left];
      const Node& b = objects.nodes[right];
      const auto first = objects.children_of(a);
      const auto second = objects.children_of(b);
      return traits(a) == traits(b) && a.payload == b.payload &&
             std::equal(first.begin(), first.end(), second.begin(), second.end());
    }
  };

  static std::uint32_t traits(const Node& node) {
    return (static_cast<std::uint32_t>(node.sort) << 16U) |
           (static_cast<std::uint32_t>(static_cast<unsigned char>(node.type)) << 8U) |
           (node.interned ? 1U : 0U) | (node.ascii ? 2U : 0U);
  }

  /// Bytes that depend on the value alone, to sort by.
  std::string content(NodeId id) const {
    const Node& node = objects_.nodes[id];
    std::string text;
    text += static_cast<char>(node.sort);
    text += node.type;
    text += static_cast<char>((node.interned ? 1 : 0) + (node.ascii ? 2 : 0));
    text += fmt::format("{}:", node.payload.size());
    text += node.payload;
    for (const NodeId child : objects_.children_of(node)) text += content(child);
    return text;
  }

  Objects& objects_;
  std::vector<NodeId> done_;
  std::pmr::monotonic_buffer_resource memory_;
  std::pmr::unordered_set<NodeId, Hash, Equal> shared_;
};

class Writer {
 public:
  explicit Writer(const Objects& objects)
      : objects_(objects), uses_(objects.nodes.size()), index_(objects.nodes.size(), kNone) {}

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
    const Node& node = objects_.nodes[id];
    if (referable(node) && ++uses_[id] > 1) return;
    for (const NodeId child : objects_.children_of(node)) count(child);
  }

  void number(std::size_t value) {
    const auto narrow = static_cast<std::uint32_t>(value);
    std::array<char, 4> bytes{};
    std::memcpy(bytes.data(), &narrow, 4);
    out_.append(bytes.data(), bytes.size());
  }

  void write(NodeId id) {
    const Node& node = objects_.nodes[id];
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
        if (node.child_count < 256) {
          type(kSmallTuple);
          out_ += static_cast<char>(node.child_count);
        } else {
          type(kTuple);
          number(node.child_count);
        }
        write_children(node);
        break;
      case Sort::frozen_set:
        type(kFrozenSet);
        number(node.child_count);
        write_children(node);
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
    const std::span<const NodeId> children = objects_.children_of(node);
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (i == kBeforeLine) out_ += node.line;
      write(children[i]);
    }
  }

  void write_children(const Node& node) {
    for (const NodeId child : objects_.children_of(node)) write(child);
  }

  const Objects& objects_;
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
  const NodeId canonical_root = Canon{reader.objects}.visit(root);
  return Writer{reader.objects}.write_all(canonical_root);
}

}  // namespace mlenv
