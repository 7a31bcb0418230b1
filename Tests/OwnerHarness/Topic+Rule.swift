package import PodcastModel
package import WireMessages

extension Topic {
    /// Whether `service` may publish a message of `kind` to the topic, decided from its text; `TopicRule` decides from the
    /// bytes.
    package func isPublishable(by service: ServiceName, kind: MessageKind) -> Bool {
        guard text.utf8.count <= Self.limit, owner == service, text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }),
            !parts.contains(where: \.isEmpty)
        else { return false }
        return text.hasPrefix("live/") == (kind == .live) && (kind == .live || kind.isSequenced)
    }
}
