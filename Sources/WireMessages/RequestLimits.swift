import FoundationEssentials
package import PodcastModel
import SwiftProtobuf

/// The maximum lengths of a request’s texts (the table in `protocols/bus.md`).
///
/// An owner checks a request before it takes effect, so that it never acknowledges a text that can’t be published.
package enum RequestLimits {
    /// The maximum size of `origin`, the name of the requesting program, in bytes.
    package static let origin = 64
    /// The maximum size in bytes of a text that isn’t listed in `texts`: an ID, a name, a key, a code, a device.
    package static let text = 512
    /// The maximum size in bytes of a message’s unknown fields, which may be stored with it.
    package static let unknownFields = 512

    private static let address = 8_192
    private static let title = 4_096
    private static let note = 8_192
    private static let value = 1_024
    private static let identity = 16_384

    /// The maximum sizes in bytes of other texts, by message and field number.
    private static let texts: [String: [Int: Int]] = [
        WireSubscribe.protoMessageName: [1: address, 3: value, 4: value],
        WireCheck.protoMessageName: [1: address],
        WireChangeAddress.protoMessageName: [2: address, 3: value, 4: value],
        WireAddFeeds.Outline.protoMessageName: [1: address, 2: title, 3: title],
        WireSetPodcast.protoMessageName: [4: title],
        WireEpisodeSummary.protoMessageName: [2: title, 4: title, 7: address, 8: title, 9: address],
        WireSetSetting.protoMessageName: [3: value],
        WireRemoveEntries.protoMessageName: [2: title], WireMoveEntry.protoMessageName: [5: title, 6: title, 7: title],
        WirePlayNamed.protoMessageName: [2: title],
        WireCreatePlaylist.protoMessageName: [1: title], WireChangePlaylist.protoMessageName: [1: title, 4: title],
        WireSmartList.protoMessageName: [1: title], WireResolveRule.protoMessageName: [1: title],
        WireUndelete.protoMessageName: [1: title],
        WireMoveItems.protoMessageName: [1: title, 2: title, 3: title],
        WirePlayPlaylist.protoMessageName: [1: title],
        WireSetBookmark.protoMessageName: [4: note],
        WireFindEpisode.protoMessageName: [1: address],
        WireFindPodcast.protoMessageName: [1: address],
        WireEpisodesQuery.protoMessageName: [3: title, 4: identity, 8: title],
        WirePodcastsQuery.protoMessageName: [2: identity],
        WireAliasQuery.protoMessageName: [2: identity, 3: identity],
    ]

    /// The refusal of a request with a text that is too long; nil if every text fits, or the payload can’t be decoded.
    package static func refusal(origin: String, payload: [UInt8], service: ServiceName) -> Failure? {
        if let failure = refusal(originBytes: origin.utf8.count) { return failure }
        // No text is longer than its request, so a short request needs no check of its texts.
        guard payload.count > min(text, unknownFields), let type = ServiceCatalog[service]?.request,
            let request = try? type.init(serializedBytes: payload)
        else { return nil }
        return refusal(of: request)
    }

    package static func refusal(originBytes count: Int) -> Failure? {
        guard count > origin else { return nil }
        return Failure(.tooLarge, "The request’s origin has \(count) bytes; at most \(origin) are allowed.")
    }

    private static func refusal(of request: any SwiftProtobuf.Message) -> Failure? {
        var visitor = TextVisitor(message: type(of: request).protoMessageName)
        do {
            try request.traverse(visitor: &visitor)
            return nil
        } catch let excess as Excess {
            return Failure(
                .tooLarge,
                "A text of the request has \(excess.bytes) bytes (field \(excess.field) of \(excess.message)); at most "
                    + "\(excess.limit) are allowed.")
        } catch {
            return nil
        }
    }

    fileprivate static func limit(of field: Int, in message: String) -> Int { texts[message]?[field] ?? text }

    fileprivate struct Excess: Error {
        var message: String
        var field: Int
        var bytes: Int
        var limit: Int
    }
}

/// Checks the length of every text of a message and of its nested messages.
private struct TextVisitor: Visitor {
    var message: String

    private func check(_ bytes: Int, _ field: Int, limit: Int) throws {
        guard bytes > limit else { return }
        throw RequestLimits.Excess(message: message, field: field, bytes: bytes, limit: limit)
    }

    mutating func visitSingularStringField(value: String, fieldNumber: Int) throws {
        try check(value.utf8.count, fieldNumber, limit: RequestLimits.limit(of: fieldNumber, in: message))
    }

    mutating func visitSingularBytesField(value: Data, fieldNumber: Int) throws {
        try check(value.count, fieldNumber, limit: RequestLimits.limit(of: fieldNumber, in: message))
    }

    mutating func visitSingularMessageField<M: SwiftProtobuf.Message>(value: M, fieldNumber: Int) throws {
        let outer = message
        message = M.protoMessageName
        try value.traverse(visitor: &self)
        message = outer
    }

    mutating func visitUnknown(bytes: Data) throws {
        try check(bytes.count, 0, limit: RequestLimits.unknownFields)
    }

    // Numbers have no length, and no request has a map.
    mutating func visitSingularDoubleField(value: Double, fieldNumber: Int) throws {}
    mutating func visitSingularInt64Field(value: Int64, fieldNumber: Int) throws {}
    mutating func visitSingularUInt64Field(value: UInt64, fieldNumber: Int) throws {}
    mutating func visitSingularBoolField(value: Bool, fieldNumber: Int) throws {}
    mutating func visitSingularEnumField<E: SwiftProtobuf.Enum>(value: E, fieldNumber: Int) throws {}
    mutating func visitMapField<KeyType, ValueType: MapValueType>(
        fieldType: _ProtobufMap<KeyType, ValueType>.Type, value: _ProtobufMap<KeyType, ValueType>.BaseType,
        fieldNumber: Int
    ) throws {}
    mutating func visitMapField<KeyType, ValueType>(
        fieldType: _ProtobufEnumMap<KeyType, ValueType>.Type, value: _ProtobufEnumMap<KeyType, ValueType>.BaseType,
        fieldNumber: Int
    ) throws {}
    mutating func visitMapField<KeyType, ValueType>(
        fieldType: _ProtobufMessageMap<KeyType, ValueType>.Type,
        value: _ProtobufMessageMap<KeyType, ValueType>.BaseType, fieldNumber: Int
    ) throws {}
}
