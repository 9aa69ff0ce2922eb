// Boost.Beast needs <utility> first in C++20.
#include <utility>
//
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>

#include "server/http/chunk_reader.h"
#include "server/http/head.h"

namespace tensord::server {
namespace {

namespace http = boost::beast::http;

// A head for Beast's parser, so that it accepts the body.
constexpr std::string_view kHead = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";

}  // namespace

struct ChunkReader::Impl {
  // Called by the parser for each chunk.
  void operator()(uint64_t size, boost::beast::string_view, boost::beast::error_code& error) {
    if (size != 0 && ++chunks > kMaxChunks) error = http::error::body_limit;
  }
  http::request_parser<http::buffer_body> parser;
  uint32_t chunks = 0;
};

ChunkReader::ChunkReader() : impl_(std::make_unique<Impl>()) {
  boost::beast::error_code error;
  impl_->parser.header_limit(kMaxHeadBytes);  // applies to the trailer too
  impl_->parser.body_limit(std::numeric_limits<uint64_t>::max());
  impl_->parser.on_chunk_header(*impl_);
  impl_->parser.put(boost::asio::buffer(kHead.data(), kHead.size()), error);
  impl_->parser.eager(true);
}

ChunkReader::~ChunkReader() = default;

ChunkReader::Step ChunkReader::read(std::string_view input, std::span<uint8_t> room) {
  auto& parser = impl_->parser;
  auto& body = parser.get().body();
  body.data = room.data();
  body.size = room.size();
  body.more = true;
  boost::beast::error_code error;
  Step step{State::kNeedsInput};
  step.used = parser.put(boost::asio::buffer(input.data(), input.size()), error);
  step.written = room.size() - body.size;
  if (parser.is_done()) {
    step.state = State::kDone;
  } else if (error == http::error::need_buffer) {
    step.state = State::kNeedsRoom;
  } else if (error && impl_->chunks > kMaxChunks) {
    step.state = State::kTooMany;
  } else if (error && error != http::error::need_more) {
    step.state = State::kBroken;
  }
  return step;
}

}  // namespace tensord::server
