import PodcastModel

/// Reads facts that libmpv reports only in its log, such as the reason why a file didn’t open, or a cut stream.
///
/// The wordings are those of mpv 0.35 and FFmpeg 5.1 (`stream_file.c`, `http.c`, `tcp.c`, `mp3dec.c`, `demux.c`). If
/// one changes, a message is less exact, or the confirmation of an end stricter or laxer. FFmpeg has one log for the
/// whole process, which libmpv passes to its first instance only.
struct MPVLogReader: Sendable {
    private(set) var missing = false
    private(set) var complaint: String?
    /// A stream or file ended before its declared size.
    private(set) var cut = false
    /// The stream can only be read forwards.
    private(set) var isLinear = false
    /// A seek went backwards in a stream that can only be read forwards.
    private(set) var cannotGoBack = false
    /// The length is an estimate from the bit rate.
    private(set) var estimated = false

    /// - Parameter opensOther: whether another file may be opening in advance.
    mutating func read(prefix: String, text: String, opensOther: Bool = false) {
        // The opened address may contain a password.
        let text = String(WebAddress.withoutCredentials(in: text).trimmed)
        guard !text.isEmpty else { return }
        if ["ends prematurely", "partial file", "Failed to reconnect", "Connection reset"].contains(
            where: text.contains)
        {
            cut = true
        }
        if text.contains("Not seekable, but enabling seeking") { isLinear = true }
        if text.contains("Cannot seek backward in linear streams") { cannotGoBack = true }
        // The length of a file is estimated when the file is opened, so the line may be about the other file.
        if opensOther { return }
        if prefix == "file" && text.contains("No such file") { missing = true }
        if text.contains("using bitrate for duration") || text.contains("Estimating duration from bitrate") {
            estimated = true
        }
        if !text.hasPrefix("Failed to open") || complaint == nil { complaint = text }
    }

    /// The reason why `source` could not be opened.
    func failure(opening source: AudioSource) -> Failure {
        if let sentence = complaint.flatMap(Self.lostConnection) { return Failure(.streamFailed, sentence) }
        if missing { return Failure(.fileMissing, "The file \(source) doesn’t exist.") }
        if let reason = complaint, !reason.hasPrefix("Failed to open") {
            return Failure(.streamFailed, "\(source) can’t be opened: \(reason).")
        }
        // Any other cause would have logged an error.
        return Failure(.streamFailed, "\(source.host) doesn’t respond.")
    }

    /// The message for `Connection to tcp://HOST failed: REASON` and `Failed to resolve hostname HOST: REASON`.
    private static func lostConnection(in text: String) -> String? {
        if let (host, reason) = names(in: text, "Connection to tcp://", " failed: ") {
            return Failure.unreachableHost(host, reason)
        }
        return names(in: text, "Failed to resolve hostname ", ": ").map { Failure.unknownHost($0.host) }
    }

    private static func names(
        in text: String, _ before: String, _ between: String
    ) -> (host: Substring, reason: Substring)? {
        let parts = text.split(separator: before, maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let named = parts[1].split(separator: between, maxSplits: 1, omittingEmptySubsequences: false)
        // Options may follow a host after a question mark.
        guard named.count == 2, var host = named[0].split(separator: "?").first else { return nil }
        // FFmpeg adds the default ports.
        for port in [":80", ":443"] where host.hasSuffix(port) { host = host.dropLast(port.count) }
        return (host, named[1])
    }
}
