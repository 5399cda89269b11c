#include "builder/bytecode/marshal_objects.hpp"

#include <cstring>

#include "base/error.hpp"

namespace mlenv::marshal {
namespace {

constexpr int kDepthLimit = 2000;  // marshal.c, MAX_MARSHAL_STACK_DEPTH

class Reader {
 public:
  Reader(ByteView data, CodeLayout layout, Objects& objects)
      : data_(as_text(data)), layout_(layout), objects_(objects) {}

  NodeId read_all() {
    const NodeId root = object(0);
    if (position_ != data_.size()) fail("bytes behind its end");
    return root;
  }

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
    objects_.nodes.push_back(node);
    return static_cast<NodeId>(objects_.nodes.size() - 1);
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
      case kSlice:
        return sequence(Sort::slice, 3, depth);
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
    std::vector<NodeId>& all = objects_.children;
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
  Objects& objects_;
  std::size_t position_ = 0;
  std::vector<NodeId> references_;
  std::vector<NodeId> open_;  ///< children of the sequences being read
};

}  // namespace

std::optional<CodeLayout> code_layout(int minor) {
  if (minor >= 8 && minor <= 10) return CodeLayout{24, 8, 1};
  if (minor >= 11 && minor <= 14) return CodeLayout{20, 8, 2};
  return std::nullopt;
}

NodeId read_objects(ByteView data, CodeLayout layout, Objects& objects) {
  return Reader{data, layout, objects}.read_all();
}

}  // namespace mlenv::marshal
