package import PodcastModel
package import WireMessages

/// The version of a file, as its server reports it.
package struct FileVersion: Sendable, Hashable {
    /// The values of the header fields; empty if the server sent none.
    package var etag, lastModified: String

    /// The `If-Range` value that requests the rest of this version only (RFC 9110, section 13.1.5: no weak ETags). It
    /// is empty if there is none, so that the download can’t be continued.
    package var condition: String { etag.isEmpty || etag.hasPrefix("W/") ? lastModified : etag }
}

/// The result of checking the path of a file.
package enum FoundFile: Sendable, Hashable {
    case nothing
    /// A regular file of this size in bytes.
    case file(UInt64)
    /// A link, a folder or a special file.
    case other
}

/// The download folder at the time of a check.
package struct FolderSnapshot: Sendable, Hashable {
    /// The content of the folder’s marker; empty if the marker or the folder is missing.
    package var marker = ""
    /// The podcasts’ folders that are on another device than the download folder.
    package var mounts: Set<String> = []
}

/// The file that a transfer fetches.
package struct TransferOrder: Sendable, Hashable {
    /// The number of the transfer in its reports.
    package var number: UInt64
    package var download: WireDownload
    /// The marker of the download folder; empty if the folder has none yet.
    package var folder = ""

    package var episode: String { download.episode }
}

/// The beginning of a server’s response.
package struct TransferStart: Sendable, Hashable {
    /// The size of the file in bytes; 0 if unknown.
    package var total: UInt64
    /// The position at which the response begins, in bytes.
    package var offset: UInt64
    package var version: FileVersion
    package var contentType: String
    /// Whether a part of this version was requested, but the whole file is sent.
    package var isPartRefused = false
    /// Whether nothing exists at the path of the complete file.
    package var isPathFree = true
}

/// The failure of a transfer.
package struct TransferFailure: Error, Sendable, Hashable {
    package var failure: Failure
    /// The time in seconds after which the server accepts another request.
    package var retryAfter: Double?

    package init(_ failure: Failure, retryAfter: Double? = nil) {
        (self.failure, self.retryAfter) = (failure, retryAfter)
    }
}

package enum DownloadsInput: Sendable, Hashable {
    case began(UInt64, TransferStart)
    case progressed(UInt64, received: UInt64, bytesPerSecond: Double)
    /// The first `received` bytes are synchronised to the disk.
    case saved(UInt64, received: UInt64)
    /// The transfer was cancelled; this number of bytes of the version is synchronised to the disk.
    case stopped(episode: String, FileVersion, received: UInt64)
    /// The file is complete, verified, synchronised to the disk and at its path.
    case completed(UInt64, bytes: UInt64)
    case failed(UInt64, TransferFailure)
    /// A cancelled transfer has ended and reports nothing more.
    case ended(UInt64)
    /// The sizes of all files in the folder, in bytes, by path relative to it.
    case folderScanned([String: UInt64], FolderSnapshot = FolderSnapshot())
    /// The result of a check by episode, without files that can’t be checked; no snapshot: the folder can’t be checked.
    case filesChecked(UInt64, [String: FoundFile], FolderSnapshot?)
    case marked(String)
    case markFailed(Failure)
    case scanFailed(Failure)
    case deleted(episode: String, Failure?)
    /// The interfaces of the default routes (none: there is no network), and the hour of the day, local time.
    case networkChecked(interfaces: [String], hour: Int)
}

package enum DownloadsAction: Sendable, Hashable {
    case start(TransferOrder)
    /// Cancel a transfer, and report `ended`; the partial file stays.
    case cancel(UInt64)
    /// Allow an episode’s transfer once more after the process crashed during it.
    case release(episode: String)
    /// Delete the partial files of an episode.
    case discard(episode: String)
    /// Delete the file of an episode at this path, relative to the folder, if it is a file and the folder has
    /// this marker (empty: any).
    case delete(episode: String, path: String, folder: String = "")
    /// Write a marker into the folder, unless it has one.
    case mark(String)
    case scanFolder
    /// Check the files at these paths, relative to the folder, by episode; the result repeats the number.
    case checkFiles(UInt64, [String: String])
    case checkNetwork
    /// Limit the rate of all transfers together, in bytes a second; 0 means no limit.
    case limit(bytesPerSecond: UInt64)
}
