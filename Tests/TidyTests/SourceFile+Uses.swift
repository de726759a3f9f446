extension SourceFile {
    /// A type that one file names and another declares.
    struct Use: Hashable {
        /// The path of the file that names the type.
        let user: String
        let name: String
        /// The path of the file that declares it.
        let home: String
    }

    private static let face = "extension HTTPCache {"

    /// The uses of types among the files of the engine.
    static func uses(among files: [SourceFile]) -> [Use] {
        var home: [String: String] = [:]
        for file in files {
            for type in file.topLevelTypes + file.typesOfTheFace { home[type] = file.path }
            // `typealias` stands beside the types.
            for match in file.code.matches(of: /(?m)^typealias ([A-Z]\w+)/) {
                home[String(match.1)] = file.path
            }
        }
        return files.flatMap { file -> [Use] in
            var code = file.code.replacing(/"(?:[^"\\]|\\.)*"/, with: "")
            // A type of the face is no part of the face itself: `HTTPCache.Configuration` names the
            // configuration alone.
            if !file.typesOfTheFace.isEmpty { code = code.replacing(face, with: "") }
            code = code.replacing("HTTPCache.", with: "")
            // A name behind a dot is a member of another type.
            let names = code.matches(of: /(?:^|[^.\w])([A-Z]\w+)/).map { String($0.1) }
            return Set(names).sorted().compactMap { name in
                guard let place = home[name], place != file.path else { return nil }
                return Use(user: file.path, name: name, home: place)
            }
        }
    }

    /// The types that the file nests in the cache's face.
    private var typesOfTheFace: [String] {
        guard code.contains(Self.face) else { return [] }
        return code.matches(of: /(?m)^    public struct ([A-Z]\w+)/).map { String($0.1) }
    }
}
