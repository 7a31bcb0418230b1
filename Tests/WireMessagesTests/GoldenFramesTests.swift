import FoundationEssentials
import SwiftProtobuf
import Testing
import WireMessages

/// A message of `protocols/vectors/messages.json`.
struct GoldenMessage: Decodable, Sendable, CustomTestStringConvertible {
    struct Header: Decodable, Sendable {
        var version: UInt8
        var kind: UInt8
        var kindName: String
        var flags: UInt16
        var generation: UInt32
        var epoch: String
        var sequence: String
        var originSequence: String
        var time: String
    }

    var name: String
    var socket: String
    var sender: String
    var headerFrame: Int
    var header: Header
    var frames: [String]
    var texts: [String: String]

    var testDescription: String { "\(socket): \(name)" }

    /// The decoded form of the header.
    func expected() throws -> BusHeader {
        BusHeader(
            try #require(MessageKind(rawValue: header.kind)),
            flags: .init(rawValue: header.flags),
            generation: header.generation,
            epoch: try #require(UInt64(header.epoch)),
            sequence: try #require(UInt64(header.sequence)),
            originSequence: try #require(UInt64(header.originSequence)),
            time: try #require(UInt64(header.time)))
    }
}

/// A header of `protocols/vectors/headers.json`.
struct GoldenHeader: Decodable, Sendable, CustomTestStringConvertible {
    var name: String
    var hex: String
    var error: String?

    var testDescription: String { name }
}

enum Golden {
    static let messages = load("messages", as: [GoldenMessage].self)
    static let headers = load("headers", as: [GoldenHeader].self)

    /// Returns an empty list if the file can’t be read; another test then fails.
    private static func load<Value: Decodable & ExpressibleByArrayLiteral>(_ name: String, as type: Value.Type) -> Value
    {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let file = root.appending(path: "protocols/vectors/\(name).json")
        guard let data = try? Data(contentsOf: file) else { return [] }
        return (try? JSONDecoder().decode(type, from: data)) ?? []
    }

    static func bytes(_ hex: String) throws -> [UInt8] {
        let digits = Array(hex.utf8)
        try #require(digits.count.isMultiple(of: 2))
        return try stride(from: 0, to: digits.count, by: 2).map { index in
            try #require(UInt8(String(decoding: digits[index..<index + 2], as: UTF8.self), radix: 16))
        }
    }
}

@Suite struct GoldenFramesTests {
    @Test func `every kind of message has a golden frame`() {
        #expect(Set(Golden.messages.map(\.header.kind)) == Set(MessageKind.allCases.map(\.rawValue)))
        #expect(Golden.headers.count >= 10)
    }

    @Test(arguments: Golden.messages)
    func `a golden header is decoded as described`(_ message: GoldenMessage) throws {
        let bytes = try Golden.bytes(message.frames[message.headerFrame])
        #expect(bytes.count == BusHeader.length)
        #expect(try BusHeader(decoding: bytes) == message.expected())
        #expect("\(try message.expected().kind)" == message.header.kindName)
    }

    @Test(arguments: Golden.messages)
    func `a golden header is encoded byte for byte`(_ message: GoldenMessage) throws {
        #expect(try message.expected().encoded == Golden.bytes(message.frames[message.headerFrame]))
    }

    @Test(arguments: Golden.messages)
    func `a golden text is encoded byte for byte`(_ message: GoldenMessage) throws {
        for (index, text) in message.texts {
            let place = try #require(Int(index))
            #expect(try Golden.bytes(message.frames[place]) == Array(text.utf8))
        }
        #expect(message.headerFrame == (message.socket == "pub" ? 1 : 0))
    }

    @Test func `the entries of replay and snapshot are whole events`() throws {
        for message in Golden.messages where ["replay", "snapshot"].contains(message.header.kindName) {
            let entries = message.frames.dropFirst(message.header.kindName == "replay" ? 2 : 3)
            #expect(entries.count.isMultiple(of: 3))
            for index in stride(from: entries.startIndex, to: entries.endIndex, by: 3) {
                let header = try BusHeader(decoding: Golden.bytes(entries[index + 1]))
                #expect(header.kind.isSequenced)
                #expect(try header.sequence <= message.expected().sequence)
            }
        }
    }

    @Test func `the payloads of the bus itself are decoded and encoded`() throws {
        let status = try #require(Golden.messages.first { $0.name == "status of a service" })
        let bytes = try Golden.bytes(status.frames[2])
        let read = try WireServiceStatus(serializedBytes: bytes)
        #expect(read.name == "queue" && read.state == .ready && read.generation == 1_767_225_601)
        #expect(try read.serializedBytes() == bytes)

        let failure = try #require(Golden.messages.first { $0.name == "failure to a client" })
        let refusal = try WireFailure(serializedBytes: Golden.bytes(failure.frames[2]))
        #expect(refusal.code == "unavailable" && refusal.retry && refusal.message.hasPrefix("The queue service"))
        #expect(try refusal.serializedBytes() == Golden.bytes(failure.frames[2]))
    }

    @Test(arguments: Golden.headers)
    func `a malformed header is refused with its reason`(_ header: GoldenHeader) throws {
        let bytes = try Golden.bytes(header.hex)
        var reason: String?
        do throws(FrameError) { _ = try BusHeader(decoding: bytes) } catch {
            reason =
                switch error {
                case .truncated: "truncated"
                case .unknownVersion: "unknownVersion"
                case .unknownKind: "unknownKind"
                default: "another"
                }
        }
        #expect(reason == header.error)
    }
}
