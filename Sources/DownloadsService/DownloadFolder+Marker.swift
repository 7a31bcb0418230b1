import LibC
import PodcastModel

/// The folder is recognised by a small file: an empty mount point has none, and device numbers change with each boot.
extension DownloadFolder {
    static let markerName = ".lockstep-downloads"
    /// The code of the failure if the folder doesn’t have the expected marker.
    static let wrongFolderCode = "folderAway"
    /// The maximum size of a marker in bytes.
    private static let markerLimit = 64

    var wrongFolder: Failure {
        Failure(
            code: Self.wrongFolderCode,
            message: "\(root) isn’t the folder that contains the downloads; check that its disk is mounted.",
            retry: true)
    }

    /// Returns the content of an open folder’s marker: empty if there is none, nil if it can’t be read.
    static func marker(in folder: Int32) -> String? {
        let file = openat(folder, markerName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return isAbsent(errno) ? "" : nil }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: markerLimit)
        let count = read(file, &bytes, bytes.count)
        // A folder with the marker’s name doesn’t count as a marker.
        guard count >= 0 else { return errno == EISDIR ? "" : nil }
        let text = bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }
        return text.allSatisfy { (0x21...0x7e).contains($0) } ? String(decoding: text, as: UTF8.self) : ""
    }

    /// Writes a marker into the folder, synchronised to the disk, unless the folder has one.
    ///
    /// - Returns: the content of the folder’s marker.
    func mark(_ id: String) throws(Failure) -> String {
        let top = try openRoot(making: false)
        defer { close(top) }
        if let marker = Self.marker(in: top), !marker.isEmpty { return marker }
        let name = Self.markerName + ".new"
        unlinkat(top, name, 0)
        let file = openat(top, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failure("The marker file of the download folder can’t be written", name) }
        defer { close(file) }
        let bytes = Array("\(id)\n".utf8)
        guard pwrite(file, bytes, bytes.count, 0) == bytes.count, fsync(file) == 0,
            renameat(top, name, top, Self.markerName) == 0, fsync(top) == 0
        else {
            let failure = failure("The marker file of the download folder can’t be written", name)
            unlinkat(top, name, 0)
            throw failure
        }
        return id
    }
}
